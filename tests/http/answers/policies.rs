//! Which answers are kept, and for how long.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::advance;
use tower_idempotency::{Keep, Operation, Policy};

use crate::{
    answers::fixture::{Fixture, KEPT, RELEASED, TOMBSTONE, Whole, as_it_is},
    common::frames::Frames,
    common::{Seen, see},
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn each_policy_keeps_the_statuses_that_it_names() {
    /// A policy, what it keeps, and what it does not.
    type Kind = (fn() -> Policy, &'static [u16], &'static [u16]);
    const UNDONE: [u16; 3] = [401, 407, 429];
    let kinds: [Kind; 4] = [
        (Policy::replay, &[200, 201, 204, 299, 301, 303, 304], &[400, 404, 409, 422, 500, 503]),
        (
            || Policy::replay().keep(Keep::FINAL),
            &[200, 303, 400, 402, 404, 405, 406, 409, 410, 411, 414, 416, 418, 422, 451, 499],
            &[401, 403, 407, 408, 412, 413, 415, 421, 423, 424, 425, 426, 428, 429, 431, 500, 599],
        ),
        (|| Policy::replay().keep(Keep::EVERYTHING), &[200, 404, 429, 500, 503, 999], &[401, 407]),
        (
            || Policy::replay().keep(Keep::when(|answer| answer.status().as_u16() % 2 == 0)),
            &[200, 404, 500],
            &[201, 303, 401, 503],
        ),
    ];
    for (policy, kept, released) in kinds {
        for (statuses, record, runs) in [(kept, KEPT, 1), (released, RELEASED, 2)] {
            for status in statuses.iter().map(|&status| StatusCode::from_u16(status).unwrap()) {
                let fixture = Fixture::new(|layer| layer.policy(policy()), move |_| status);
                assert_eq!(fixture.ask().await.status(), status);
                let record = record.filter(|_| runs == 1 || !UNDONE.contains(&status.as_u16()));
                assert_eq!(fixture.record().await, record, "{status} under {:?}", policy().keep(Keep::FINAL));
                assert_eq!(fixture.ask().await.status(), status);
                assert_eq!(fixture.runs.get(), runs, "{status}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn by_everything_that_an_answer_has() {
    const LINES: &[(&str, &str)] = &[("x-a", "1"), ("x-a", "2")];
    let keep = Keep::when(|answer| {
        answer.status() == 200
            && answer.headers().get_all("x-a").iter().count() == 2
            && answer.body() == b"onetwo"
            && answer.trailers().is_some_and(|trailers| trailers["x-sum"] == "2")
    });
    for (fields, chunks, sum, record) in [
        (LINES, ["one", "two"], "2", KEPT),
        (&LINES[..1], ["one", "two"], "2", RELEASED),
        (LINES, ["two", "one"], "2", RELEASED),
        (LINES, ["one", "two"], "3", RELEASED),
    ] {
        let keep = keep.clone();
        let fixture = Fixture::new(
            |layer| layer.keep(keep),
            move |_| (crate::common::frames::fields(fields), Frames::of(chunks).trailers(&[("x-sum", sum)]).boxed()),
        );
        Whole::of(fixture.ask().await).await;
        assert_eq!(fixture.record().await, record, "{fields:?} {chunks:?} {sum}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_held_shows_no_body() {
    let keep = || Keep::when(|answer| answer.body().is_empty() && answer.trailers().is_none());
    let stream = |operation: Operation| {
        operation.stream();
        "a stream"
    };
    let streamed = Fixture::new(|layer| layer.keep(keep()), stream);
    let long = Fixture::new(|layer| layer.keep(keep()).response_limit(2), |_| "too long");
    let broken = Fixture::new(|layer| layer.keep(keep()), |_| Frames::of(["half"]).broken().boxed());
    for fixture in [streamed, long, broken] {
        fixture.ask().await;
        assert_eq!(fixture.record().await, TOMBSTONE);
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_says_that_it_is_not_kept() {
    let discard = |operation: Operation| {
        operation.discard();
        format!("run {}", operation.attempt())
    };
    for policy in [Policy::replay(), Policy::at_most_once(), Policy::reject()] {
        let fixture = Fixture::new(|layer| layer.policy(policy), discard);
        assert_eq!(see(fixture.ask().await).await, Seen::first(200, "run 1"));
        assert_eq!(fixture.record().await, RELEASED);
        assert_eq!(see(fixture.ask().await).await, Seen::first(200, "run 2"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_says_for_how_long() {
    for status in [200, 503] {
        let fixture = Fixture::new(as_it_is, move |operation| {
            operation.keep_for(SECOND * 10);
            StatusCode::from_u16(status).unwrap()
        });
        assert_eq!(fixture.ask().await.status(), status);
        advance(SECOND * 9).await;
        assert_eq!((fixture.ask().await.status().as_u16(), fixture.runs.get()), (status, 1));
        advance(SECOND * 2).await;
        assert_eq!((fixture.ask().await.status().as_u16(), fixture.runs.get()), (status, 2));
    }
}

/// An answer that says that nothing began leaves no trace, unless the handler says otherwise.
#[tokio::test(start_paused = true)]
async fn what_began_is_released_instead_of_undone() {
    let cases: [(fn(&Operation), _); 5] = [
        (|_| (), None),
        (Operation::began, RELEASED),
        (Operation::discard, None),
        (|operation| (operation.began(), operation.discard()).0, RELEASED),
        (|operation| drop(operation.child_key("bank")), RELEASED),
    ];
    for (say, record) in cases {
        for status in [401, 407, 429].map(|status| StatusCode::from_u16(status).unwrap()) {
            let answer = move |operation: Operation| {
                say(&operation);
                status
            };
            let fixture = Fixture::new(as_it_is, answer);
            assert_eq!(fixture.ask().await.status(), status);
            assert_eq!(fixture.record().await, record, "{status}");
        }
    }
    // What keeps everything does not keep what the handler discards.
    let fixture = Fixture::new(
        |layer| layer.keep(Keep::EVERYTHING),
        |operation| {
            operation.discard();
            StatusCode::TOO_MANY_REQUESTS
        },
    );
    fixture.ask().await;
    assert_eq!(fixture.record().await, None);
}

#[tokio::test(start_paused = true)]
async fn the_last_word_counts_and_so_does_one_of_the_body() {
    for (words, record) in [("keep, discard", RELEASED), ("discard, keep", KEPT)] {
        let fixture = Fixture::new(as_it_is, move |operation| {
            for word in words.split(", ") {
                if word == "keep" { operation.keep_for(SECOND) } else { operation.discard() }
            }
        });
        fixture.ask().await;
        assert_eq!(fixture.record().await, record, "{words}");
    }

    let late = |operation: Operation| {
        let body = Frames::of(["one"]).boxed();
        // A body that finds out half-way that nothing was done.
        axum::body::Body::new(http_body_util::BodyExt::map_frame(body, move |frame| {
            operation.discard();
            frame
        }))
    };
    let fixture = Fixture::new(as_it_is, late);
    assert_eq!(Whole::of(fixture.ask().await).await.data, "one");
    assert_eq!(fixture.record().await, RELEASED);
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_is_kept_for_as_long_as_the_handler_says() {
    let stream = |operation: Operation| {
        operation.stream();
        operation.keep_for(SECOND);
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let fixture = Fixture::new(as_it_is, stream);
    fixture.ask().await;
    assert_eq!(fixture.record().await, TOMBSTONE);
    assert_eq!(see(fixture.ask().await).await.problem(), "response-not-retained");
    advance(SECOND).await;
    assert_eq!(fixture.record().await, None);
}
