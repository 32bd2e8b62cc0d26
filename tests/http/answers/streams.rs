//! Answers that the layer does not wait for, and answers that break.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::stream;
use tokio::time::{Instant, sleep};
use tower_idempotency::{Keep, Operation};

use crate::{
    answers::fixture::{Fixture, KEPT, RELEASED, TOMBSTONE, Whole, as_it_is, next},
    common::frames::Frames,
    common::{Counter, Seen, see},
};

/// What makes a stream of an answer.
#[derive(Clone, Copy, Debug)]
enum By {
    MediaType(&'static str),
    Handler,
    Status(u16),
}

impl By {
    const ALL: [Self; 5] = [
        Self::MediaType("text/event-stream"),
        Self::MediaType("Text/Event-Stream; charset=utf-8"),
        Self::Handler,
        Self::Status(101),
        Self::Status(206),
    ];

    fn answer(self, operation: &Operation, frames: Frames) -> Response {
        match self {
            Self::MediaType(media_type) => ([("content-type", media_type)], frames.boxed()).into_response(),
            Self::Handler => {
                operation.stream();
                frames.boxed().into_response()
            }
            Self::Status(status) => (StatusCode::from_u16(status).unwrap(), frames.boxed()).into_response(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recorded_before_the_first_frame_is_asked_for() {
    for by in By::ALL {
        let pulled = Counter::default();
        let counted = pulled.clone();
        let fixture = Fixture::new(as_it_is, move |operation| {
            by.answer(&operation, Frames::of(["one", "two"]).trailers(&[("x-sum", "2")]).counted_by(&counted))
        });
        let mut body = fixture.ask().await.into_body();
        assert_eq!((pulled.get(), fixture.record().await), (0, TOMBSTONE), "{by:?}");
        for (number, frame) in ["one", "two", ""].iter().enumerate() {
            assert_eq!(pulled.get(), number, "{by:?}: nothing is read ahead");
            assert_eq!(next(&mut body).await.unwrap().unwrap(), frame);
        }
        assert!(next(&mut body).await.is_none());
        assert_eq!(see(fixture.ask().await).await.problem(), "response-not-retained", "{by:?}");
        assert_eq!(fixture.runs.get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_says_that_nothing_began_undoes_the_attempt() {
    for by in [By::MediaType("text/event-stream"), By::Handler] {
        for (status, began) in [(401, false), (407, false), (429, false), (429, true)] {
            let fixture = Fixture::new(as_it_is, move |operation| {
                if began {
                    operation.began();
                }
                (StatusCode::from_u16(status).unwrap(), by.answer(&operation, Frames::of(["no"])))
            });
            let response = fixture.ask().await;
            assert_eq!(fixture.record().await, if began { RELEASED } else { None }, "{by:?} {status}");
            assert_eq!(Whole::of(response).await.data, "no");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_at_once_is_released() {
    for by in [By::MediaType("text/event-stream"), By::Handler] {
        let pulled = Counter::default();
        let counted = pulled.clone();
        let fixture = Fixture::new(as_it_is, move |operation| {
            let frames = Frames::of(["no"]).counted_by(&counted);
            (StatusCode::SERVICE_UNAVAILABLE, by.answer(&operation, frames))
        });
        let response = fixture.ask().await;
        assert_eq!((pulled.get(), fixture.record().await), (0, RELEASED), "{by:?}");
        assert_eq!(Whole::of(response).await.data, "no");
        assert_eq!(fixture.ask().await.status(), 503);
        assert_eq!(fixture.runs.get(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_counts_as_done_unless_the_handler_takes_it_back() {
    let upgrade = |_: Operation| StatusCode::SWITCHING_PROTOCOLS;
    let never = Keep::when(|_| false);
    for (keep, record) in [(Keep::SUCCESS, TOMBSTONE), (Keep::EVERYTHING, TOMBSTONE), (never, TOMBSTONE)] {
        let fixture = Fixture::new(|layer| layer.keep(keep), upgrade);
        assert_eq!(fixture.ask().await.status(), 101);
        assert_eq!(fixture.record().await, record);
    }
    let taken_back = Fixture::new(as_it_is, move |operation| {
        operation.discard();
        upgrade(operation)
    });
    assert_eq!(taken_back.ask().await.status(), 101);
    assert_eq!(taken_back.record().await, RELEASED);
}

#[tokio::test(start_paused = true)]
async fn what_only_looks_like_a_stream_is_kept() {
    for media_type in ["text/event-streams", "text/plain; x=text/event-stream", "text/event"] {
        let frames = |media_type| ([("content-type", media_type)], Frames::of(["one", "two"]).boxed());
        let fixture = Fixture::new(as_it_is, move |_| frames(media_type));
        assert_eq!(Whole::of(fixture.ask().await).await.data, "onetwo");
        assert_eq!(fixture.record().await, KEPT, "{media_type}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_breaks_is_never_replayed() {
    for (status, record, runs) in [(200, TOMBSTONE, 1), (303, TOMBSTONE, 1), (500, RELEASED, 2)] {
        let status = StatusCode::from_u16(status).unwrap();
        let fixture = Fixture::new(as_it_is, move |_| (status, Frames::of(["on", "e"]).broken().boxed()));
        let response = fixture.ask().await;
        assert_eq!((response.status(), fixture.record().await), (status, record));
        let mut body = response.into_body();
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "one", "the client gets what there was");
        assert_eq!(next(&mut body).await.unwrap().unwrap_err().to_string(), "broken off");
        assert!(next(&mut body).await.is_none());
        let retry = fixture.ask().await;
        assert_eq!(fixture.runs.get(), runs, "{status}");
        assert_eq!(retry.status() == StatusCode::CONFLICT, runs == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_breaks_at_once_is_told_at_once() {
    let fixture = Fixture::new(as_it_is, |_| Frames::of([""; 0]).broken().boxed());
    let mut body = fixture.ask().await.into_body();
    assert!(next(&mut body).await.unwrap().is_err());
    assert_eq!(fixture.record().await, TOMBSTONE);
    assert_eq!(see(fixture.ask().await).await.problem(), "response-not-retained");
}

/// Lines without a length, one every `pace`.
fn lines(pace: Duration, lines: usize) -> Body {
    let lines = stream::unfold(0, move |line| async move {
        sleep(pace).await;
        (line < lines).then(|| (Ok::<_, Infallible>(format!("line {line}\n")), line + 1))
    });
    Body::from_stream(lines)
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_length_streams_on_after_the_time_it_has() {
    let wait = Duration::from_secs(5);
    let fixture = Fixture::new(|layer| layer.stream_after(wait), |_| lines(Duration::from_secs(2), 4));
    let start = Instant::now();
    let mut body = fixture.ask().await.into_body();
    assert_eq!(
        (start.elapsed(), fixture.record().await),
        (wait, TOMBSTONE),
        "recorded before the client sees any of it"
    );
    let mut sizes = Vec::new();
    while let Some(frame) = next(&mut body).await {
        sizes.push((frame.unwrap().len(), start.elapsed().as_secs()));
    }
    assert_eq!(sizes, [(14, 5), (7, 6), (7, 8)], "what was read comes at once, the rest as it is made");
    assert_eq!(see(fixture.ask().await).await.problem(), "response-not-retained");
    assert_eq!(fixture.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_in_time_or_tells_its_length_is_kept() {
    let by_default = Fixture::new(as_it_is, |_| lines(Duration::from_secs(2), 4));
    let in_time =
        Fixture::new(|layer| layer.stream_after(Duration::from_secs(11)), |_| lines(Duration::from_secs(2), 4));
    let with_length = Fixture::new(
        |layer| layer.stream_after(Duration::from_secs(5)),
        |_| ([("content-length", "28")], lines(Duration::from_secs(2), 4)),
    );
    for fixture in [by_default, in_time, with_length] {
        let first = see(fixture.ask().await).await;
        assert_eq!((first.body.len(), fixture.record().await), (28, KEPT));
        assert_eq!(see(fixture.ask().await).await, Seen { replayed: true, ..first });
    }
}
