//! What the layer adds to answers of the handler's, and takes off.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::{
    body::Body,
    http::{self, HeaderName, StatusCode},
    response::IntoResponse,
};
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt};
use tower_idempotency::{
    IdempotencyLayer, Keep, MemoryStore, OnDuplicate, Operation, Policy, Secret,
    service::RequestBody,
    store::{StoreErrorKind, StoreVerb},
    testing::FaultyStore,
};

use crate::{
    answers::fixture::{Fixture, Whole, as_it_is},
    common::{DAY, Seen, post, second_of_day, see},
};

fn timed(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer
        .completed_header(HeaderName::from_static("x-completed"))
        .expires_header(HeaderName::from_static("x-expires"))
        .retention(Duration::from_secs(60))
}

fn value(whole: &Whole, name: &str) -> Option<String> {
    let found = whole.fields.iter().find(|(field, _)| field == name);
    found.map(|(_, value)| String::from_utf8(value.clone()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_the_handler_passes_on_is_taken_off() {
    let fixture = Fixture::new(as_it_is, |_| [("idempotent-replayed", "true")]);
    assert!(!Whole::of(fixture.ask().await).await.has("idempotent-replayed"));
    assert_eq!(value(&Whole::of(fixture.ask().await).await, "idempotent-replayed").as_deref(), Some("true"));
    // Of a stream as well.
    let fixture = Fixture::new(as_it_is, |operation| {
        operation.stream();
        [("idempotent-replayed", "true")]
    });
    assert!(!Whole::of(fixture.ask().await).await.has("idempotent-replayed"));
}

#[tokio::test(start_paused = true)]
async fn the_default_mark_is_taken_off_wherever_it_is_not_this_layers() {
    let answer = |_| [("idempotent-replayed", "true"), ("x-replayed", "true")];
    let without = Fixture::new(IdempotencyLayer::without_replay_header, answer);
    for _ in 0..2 {
        let seen = Whole::of(without.ask().await).await;
        assert!(!seen.has("idempotent-replayed"), "neither sent nor kept");
        assert!(seen.has("x-replayed"), "a field as any other");
    }
    let named = Fixture::new(|layer| layer.replay_header(HeaderName::from_static("x-replayed")), answer);
    for replay in [false, true] {
        let seen = Whole::of(named.ask().await).await;
        assert_eq!((seen.has("idempotent-replayed"), seen.has("x-replayed")), (false, replay));
    }
    let passes = Fixture::new(|layer| layer.on_duplicate(OnDuplicate::PassThrough), answer);
    for _ in 0..2 {
        assert!(!Whole::of(passes.ask().await).await.has("idempotent-replayed"));
    }
    assert_eq!(passes.runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_mark_a_replay_looks_like_the_first_answer() {
    let fixture = Fixture::new(IdempotencyLayer::without_replay_header, |_| [("x-a", "1")]);
    let first = Whole::of(fixture.ask().await).await;
    assert_eq!(Whole::of(fixture.ask().await).await, first);
    assert_eq!(fixture.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_completion_and_of_expiry() {
    // What an answer that the handler passes on says of itself is not what this layer says.
    let fixture = Fixture::new(timed, |_| ([("x-completed", "yesterday"), ("x-expires", "never")], "body"));
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let first = Whole::of(fixture.ask().await).await;
    let [completed, expires] = ["x-completed", "x-expires"].map(|name| second_of_day(&value(&first, name).unwrap()));
    assert!((completed + DAY - before % DAY) % DAY <= 60, "it is of now: {completed}");
    assert_eq!((expires + DAY - completed) % DAY, 60);
    let replay = Whole::of(fixture.ask().await).await;
    for name in ["x-completed", "x-expires"] {
        assert_eq!(value(&replay, name), value(&first, name), "{name} of a replay");
        for answer in [&first, &replay] {
            assert_eq!(answer.fields.iter().filter(|(field, _)| field == name).count(), 1, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_times_too() {
    let fixture = Fixture::new(timed, |operation| {
        operation.stream();
        "body"
    });
    let first = Whole::of(fixture.ask().await).await;
    assert!(first.has("x-completed") && first.has("x-expires"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_has_no_times() {
    let fixture = Fixture::new(timed, |_| StatusCode::NOT_FOUND);
    let released = Whole::of(fixture.ask().await).await;
    assert!(!released.has("x-completed") && !released.has("x-expires"));
    let fixture = Fixture::new(as_it_is, |_| "body");
    let untold = Whole::of(fixture.ask().await).await;
    assert!(untold.fields.iter().all(|(name, _)| name.starts_with("content-")), "{untold:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_recorded_says_nothing_of_its_record() {
    let store = FaultyStore::new(MemoryStore::new());
    store.faults().on(StoreVerb::Settle).fail(StoreErrorKind::Unavailable);
    let layer = timed(IdempotencyLayer::new(store).policy(Policy::at_most_once()).sdk_hints());
    let service = layer.layer(tower::service_fn(async |_: http::Request<RequestBody<Body>>| {
        Ok::<_, std::convert::Infallible>(StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }));
    let unrecorded = Whole::of(service.oneshot(post("/run", "k", "")).await.unwrap().map(Body::new)).await;
    assert_eq!(unrecorded.status, 500);
    for name in ["x-completed", "x-expires", "stripe-should-retry"] {
        assert!(!unrecorded.has(name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kept_401_keeps_its_challenge() {
    for (challenge, kept) in [
        ("Basic realm=\"a\"", true),
        ("Bearer", true),
        ("Negotiate", false),
        ("NTLM", false),
        ("Digest nonce=\"a\"", false),
    ] {
        let fixture = Fixture::new(
            |layer| layer.unscoped().policy(Policy::replay().keep(Keep::EVERYTHING)),
            move |_| (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]),
        );
        assert!(Whole::of(fixture.ask().await).await.has("www-authenticate"));
        assert_eq!(Whole::of(fixture.ask().await).await.has("www-authenticate"), kept, "{challenge}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_passes_through_sees_what_was_kept() {
    let fixture = Fixture::new(
        |layer| layer.on_duplicate(OnDuplicate::PassThrough),
        |operation| {
            let kept = operation.kept().map(|kept| format!("{} {:?}", kept.status().as_u16(), kept.body()));
            operation.keep();
            let told = format!("duplicate {}, attempt {}, {kept:?}", operation.is_duplicate(), operation.attempt());
            (StatusCode::CREATED, told)
        },
    );
    let first = "duplicate false, attempt 1, None";
    assert_eq!(see(fixture.ask().await).await, Seen::first(201, first));
    let record = fixture.record().await;
    for run in 2..4 {
        let again = format!("duplicate true, attempt 0, Some(\"201 b\\\"{first}\\\"\")");
        assert_eq!(see(fixture.ask().await).await, Seen::first(201, &again));
        assert_eq!(fixture.runs.get(), run);
        assert_eq!(fixture.record().await, record, "nothing is recorded for it");
    }
    assert_eq!(see(fixture.send(post("/run", "k", "other")).await).await.problem(), "key-reused");
}

/// It asks the other side by the key that the first attempt has shown there.
#[tokio::test(start_paused = true)]
async fn a_duplicate_that_passes_through_has_the_child_key_of_the_first_attempt() {
    let secret = |byte: u8| Secret::new([byte; 32]).unwrap();
    let store = MemoryStore::new();
    let told = async |secret: Option<Secret>, caller: Option<&str>, status: StatusCode| {
        let layer = IdempotencyLayer::new(store.clone()).on_duplicate(OnDuplicate::PassThrough);
        let layer = if let Some(secret) = secret { layer.secret(secret) } else { layer };
        let handler = axum::routing::post(async move |operation: Operation| (status, operation.child_key("bank")));
        let app = axum::Router::new().route("/run", handler.layer(layer));
        let mut request = post("/run", "k", "");
        if let Some(caller) = caller {
            request.headers_mut().insert("authorization", caller.parse().unwrap());
        }
        see(tower::ServiceExt::oneshot(app, request).await.unwrap()).await.body
    };
    // The first attempt is nobody's, and the secret is replaced between the next two.
    let first = told(Some(secret(1)), None, StatusCode::INTERNAL_SERVER_ERROR).await;
    let both = || Some(secret(2).accept([1; 32]).unwrap());
    assert_eq!(told(both(), Some("ann"), StatusCode::CREATED).await, first);
    assert_eq!(told(both(), Some("ann"), StatusCode::OK).await, first);
    assert!(told(both(), Some("bob"), StatusCode::OK).await.contains("other-caller"));
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_kept_failure_passes_through_with_its_body() {
    let fixture = Fixture::reading(
        |layer| layer.policy(Policy::replay().keep(Keep::EVERYTHING)).on_duplicate(OnDuplicate::PassThrough),
        |operation, request| async move {
            let content = request.into_body().collect().await.unwrap().to_bytes();
            match operation.kept() {
                Some(kept) => (StatusCode::OK, format!("{content:?} after {}", kept.status())),
                None => (StatusCode::INTERNAL_SERVER_ERROR, format!("{content:?}")),
            }
        },
    );
    let ask = async || see(fixture.send(post("/run", "k", "one book")).await).await;
    assert_eq!(ask().await, Seen::first(500, "b\"one book\""));
    assert_eq!(ask().await, Seen::first(200, "b\"one book\" after 500 Internal Server Error"));
    assert_eq!(fixture.runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_passes_through_without_what_was_not_kept() {
    let fixture = Fixture::new(
        |layer| layer.on_duplicate(OnDuplicate::PassThrough).response_limit(4),
        |operation| format!("duplicate {}, kept {}", operation.is_duplicate(), operation.kept().is_some()),
    );
    drop(fixture.ask().await);
    assert_eq!(see(fixture.ask().await).await, Seen::first(200, "duplicate true, kept false"));
}
