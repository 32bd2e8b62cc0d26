//! Answers that are too long to be kept.

use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use tower_idempotency::IdempotencyLayer;

use crate::{
    answers::fixture::{Fixture, KEPT, RELEASED, TOMBSTONE, Whole, as_it_is, next},
    common::frames::Frames,
    common::{Counter, see},
};

fn small(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.response_limit(8)
}

fn four_by_four() -> Frames {
    Frames::of(["aaaa", "bbbb", "cccc", "dddd", "eeee"])
}

/// How long the answer is said to be.
#[derive(Clone, Copy, Debug)]
enum Told {
    By(&'static str),
    ByItsBody,
    Not,
}

fn answer(frames: Frames, told: Told) -> Response {
    match told {
        Told::By(length) => ([("content-length", length)], frames.boxed()).into_response(),
        Told::ByItsBody => frames.told().boxed().into_response(),
        Told::Not => frames.boxed().into_response(),
    }
}

#[tokio::test(start_paused = true)]
async fn up_to_the_limit_it_is_kept() {
    for told in [Told::By("8"), Told::ByItsBody, Told::Not] {
        let fixture = Fixture::new(small, move |_| answer(Frames::of(["aaaa", "bbbb"]), told));
        let first = Whole::of(fixture.ask().await).await;
        assert_eq!((&first.data[..], fixture.record().await), (&b"aaaabbbb"[..], KEPT), "{told:?}");
        assert_eq!(Whole::of(fixture.ask().await).await.data, first.data);
    }
}

#[tokio::test(start_paused = true)]
async fn past_it_the_client_gets_it_as_it_comes() {
    // With a length, nothing is read before the answer goes out; without one, up to the frame that is too much.
    for (told, read, first) in
        [(Told::By("20"), 0, "aaaa"), (Told::ByItsBody, 0, "aaaa"), (Told::Not, 3, "aaaabbbbcccc")]
    {
        let pulled = Counter::default();
        let counted = pulled.clone();
        let fixture = Fixture::new(small, move |_| answer(four_by_four().counted_by(&counted), told));
        let mut body = fixture.ask().await.into_body();
        assert_eq!((pulled.get(), fixture.record().await), (read, TOMBSTONE), "{told:?}");
        assert_eq!(next(&mut body).await.unwrap().unwrap(), first);
        for (number, frame) in ["aaaa", "bbbb", "cccc", "dddd", "eeee"].iter().enumerate().skip(read.max(1)) {
            assert_eq!(pulled.get(), number, "{told:?}: nothing is read ahead");
            assert_eq!(next(&mut body).await.unwrap().unwrap(), frame);
        }
        assert!(next(&mut body).await.is_none(), "{told:?}");
        assert_eq!(see(fixture.ask().await).await.problem(), "response-not-retained");
        assert_eq!(fixture.runs.get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn its_length_stays_as_told() {
    for (told, length) in [(Told::By("20"), None), (Told::ByItsBody, Some(20)), (Told::Not, None)] {
        let fixture = Fixture::new(small, move |_| answer(four_by_four(), told));
        let response = fixture.ask().await;
        assert_eq!(response.headers().contains_key("content-length"), matches!(told, Told::By(_)));
        assert_eq!(response.body().size_hint().exact(), length, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn its_trailers_and_its_end_go_through() {
    let long = |_| four_by_four().trailers(&[("x-sum", "20")]).boxed();
    let whole = Whole::of(Fixture::new(small, long).ask().await).await;
    assert_eq!((whole.data.len(), &whole.trailers.unwrap()["x-sum"]), (20, &"20".parse().unwrap()));

    let mut body = Fixture::new(small, |_| four_by_four().broken().boxed()).ask().await.into_body();
    for _ in 0..3 {
        assert!(next(&mut body).await.unwrap().is_ok());
    }
    assert!(next(&mut body).await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_released_however_long() {
    for told in [Told::By("20"), Told::ByItsBody, Told::Not] {
        let fixture = Fixture::new(small, move |_| (axum::http::StatusCode::BAD_GATEWAY, answer(four_by_four(), told)));
        assert_eq!(Whole::of(fixture.ask().await).await.data.len(), 20);
        assert_eq!(fixture.record().await, RELEASED, "{told:?}");
        assert_eq!(Whole::of(fixture.ask().await).await.data.len(), 20);
        assert_eq!(fixture.runs.get(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_that_tells_another_length_is_kept() {
    // As to a conditional request (RFC 9110, section 8.6).
    let not_modified = |_| (axum::http::StatusCode::NOT_MODIFIED, [("content-length", "3000000")]);
    let fixture = Fixture::new(as_it_is, not_modified);
    assert_eq!(fixture.ask().await.status(), 304);
    assert_eq!(fixture.record().await, KEPT);
}

#[tokio::test(start_paused = true)]
async fn by_default_the_limit_is_two_mebibytes() {
    for (length, record) in [(2 << 20, KEPT), ((2 << 20) + 1, TOMBSTONE)] {
        let fixture = Fixture::new(as_it_is, move |_| vec![b'x'; length]);
        assert_eq!(Whole::of(fixture.ask().await).await.data.len(), length);
        assert_eq!(fixture.record().await, record, "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_nothing_keeps_what_is_empty() {
    for (body, record) in [("", KEPT), ("x", TOMBSTONE)] {
        let fixture = Fixture::new(|layer| layer.response_limit(0), move |_| body);
        assert_eq!(Whole::of(fixture.ask().await).await.data, body);
        assert_eq!(fixture.record().await, record, "{body:?}");
    }
}
