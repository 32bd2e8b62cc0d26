//! What the layer adds to answers of the handler's, and takes off.

use std::time::Duration;

use axum::http::{HeaderName, StatusCode};
use tower_idempotency::{IdempotencyLayer, Keep, OnDuplicate, Policy};

use crate::{
    answers::lab::{Lab, Whole, as_it_is},
    common::{Seen, post, see},
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
    let lab = Lab::new(as_it_is, |_| [("idempotent-replayed", "true")]);
    assert!(!Whole::of(lab.ask().await).await.has("idempotent-replayed"));
    assert_eq!(value(&Whole::of(lab.ask().await).await, "idempotent-replayed").as_deref(), Some("true"));
    // Of a stream as well.
    let lab = Lab::new(as_it_is, |operation| {
        operation.stream();
        [("idempotent-replayed", "true")]
    });
    assert!(!Whole::of(lab.ask().await).await.has("idempotent-replayed"));
}

#[tokio::test(start_paused = true)]
async fn without_a_mark_a_replay_looks_like_the_first_answer() {
    let lab = Lab::new(IdempotencyLayer::without_marker, |_| [("x-a", "1")]);
    let first = Whole::of(lab.ask().await).await;
    assert_eq!(Whole::of(lab.ask().await).await, first);
    assert_eq!(lab.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_completion_and_of_expiry() {
    let lab = Lab::new(timed, |_| "body");
    let first = Whole::of(lab.ask().await).await;
    let replay = Whole::of(lab.ask().await).await;
    for name in ["x-completed", "x-expires"] {
        let date = value(&first, name).unwrap_or_else(|| panic!("{name} of a first answer"));
        assert!(date.ends_with(" GMT") && date.len() == 29, "{name}: {date}");
        assert!(replay.has(name), "{name} of a replay");
    }
    assert_ne!(value(&first, "x-completed"), value(&first, "x-expires"));
    assert_eq!(
        value(&first, "x-completed").map(|date| date[..17].to_owned()),
        value(&replay, "x-completed").map(|date| date[..17].to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_has_no_times() {
    let lab = Lab::new(timed, |_| StatusCode::NOT_FOUND);
    let released = Whole::of(lab.ask().await).await;
    assert!(!released.has("x-completed") && !released.has("x-expires"));
    let lab = Lab::new(as_it_is, |_| "body");
    let untold = Whole::of(lab.ask().await).await;
    assert!(untold.fields.iter().all(|(name, _)| name.starts_with("content-")), "{untold:?}");
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
        let lab = Lab::new(
            |layer| layer.unscoped().policy(Policy::replay().keep(Keep::Everything)),
            move |_| (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]),
        );
        assert!(Whole::of(lab.ask().await).await.has("www-authenticate"));
        assert_eq!(Whole::of(lab.ask().await).await.has("www-authenticate"), kept, "{challenge}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_passes_through_sees_what_was_kept() {
    let lab = Lab::new(
        |layer| layer.on_duplicate(OnDuplicate::PassThrough),
        |operation| {
            let kept = operation.kept().map(|kept| format!("{} {:?}", kept.status().as_u16(), kept.body()));
            operation.keep();
            let told = format!("duplicate {}, attempt {}, {kept:?}", operation.is_duplicate(), operation.attempt());
            (StatusCode::CREATED, told)
        },
    );
    let first = "duplicate false, attempt 1, None";
    assert_eq!(see(lab.ask().await).await, Seen::first(201, first));
    let record = lab.record().await;
    for run in 2..4 {
        let again = format!("duplicate true, attempt 0, Some(\"201 b\\\"{first}\\\"\")");
        assert_eq!(see(lab.ask().await).await, Seen::first(201, &again));
        assert_eq!(lab.runs.get(), run);
        assert_eq!(lab.record().await, record, "nothing is recorded for it");
    }
    assert_eq!(see(lab.send(post("/run", "k", "other")).await).await.problem(), "key-reused");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_passes_through_without_what_was_not_kept() {
    let lab = Lab::new(
        |layer| layer.on_duplicate(OnDuplicate::PassThrough).response_limit(4),
        |operation| format!("duplicate {}, kept {}", operation.is_duplicate(), operation.kept().is_some()),
    );
    drop(lab.ask().await);
    assert_eq!(see(lab.ask().await).await, Seen::first(200, "duplicate true, kept false"));
}
