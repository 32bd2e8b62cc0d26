//! A failure that was kept is replayed as the failure: no sender receives its word of success for it.

use std::time::{Duration, SystemTime};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{Response, StatusCode},
    response::IntoResponse,
};
use tower_idempotency::{
    AfterCrash, IdempotencyLayer, Keep, OnDuplicate, Operation, Policy, fingerprint,
    policy::Reply,
    preset,
    reconcile::Payload,
    store::{Claim, RecordKey, Settlement, Store, StoreAdmin},
};

use crate::{
    answers::fixture::{Fixture, as_it_is},
    common::{Seen, frames::Frames, post, see},
};

fn responds(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.on_duplicate(OnDuplicate::Respond(Reply::fixed(Response::new(Bytes::from_static(b"success")))))
}

fn notification() -> Request {
    let body = Body::from("notify_id=7f0c&trade_status=TRADE_SUCCESS");
    Request::post("/run").header("Content-Type", "application/x-www-form-urlencoded").body(body).unwrap()
}

#[tokio::test]
async fn a_kept_panic_is_replayed_as_a_failure() {
    let adjust = |layer: IdempotencyLayer| layer.preset(preset::alipay()).after_crash(AfterCrash::Never);
    let fixture = Fixture::new(adjust, |_| -> Response<Body> { panic!("half-way") });
    let app = fixture.app.clone();
    tokio::spawn(tower::ServiceExt::oneshot(app, notification())).await.unwrap_err();
    for _ in 0..2 {
        let seen = see(fixture.send(notification()).await).await;
        assert_eq!((seen.status.as_u16(), seen.replayed, &*seen.problem()), (500, true, "handler-failed"));
    }
    assert_eq!(fixture.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_status_of_failure() {
    for status in [400, 404, 500, 503] {
        let fixture = Fixture::new(
            |layer| responds(layer.policy(Policy::at_most_once())),
            move |_| (StatusCode::from_u16(status).unwrap(), "no"),
        );
        assert_eq!(see(fixture.ask().await).await, Seen::first(status, "no"));
        assert_eq!(see(fixture.ask().await).await, Seen::replay(status, "no"));
    }
}

#[tokio::test(start_paused = true)]
async fn that_the_handler_wants_kept() {
    let fixture = Fixture::new(responds, |operation: Operation| {
        operation.keep_for(Duration::from_secs(60));
        (StatusCode::PAYMENT_REQUIRED, "no")
    });
    assert_eq!(see(fixture.ask().await).await, Seen::first(402, "no"));
    assert_eq!(see(fixture.ask().await).await, Seen::replay(402, "no"));
}

#[tokio::test(start_paused = true)]
async fn that_is_no_success_by_its_word() {
    let everything = |layer: IdempotencyLayer| layer.preset(preset::alipay()).keep(Keep::EVERYTHING);
    let fixture = Fixture::new(everything, |_| "fail");
    fixture.send(notification()).await;
    assert_eq!(see(fixture.send(notification()).await).await, Seen::first(200, "fail"));
    assert_eq!(fixture.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn that_could_not_be_held() {
    type Handler = fn(Operation) -> axum::response::Response;
    let cases: [(&str, Handler); 4] = [
        ("a stream", |operation| {
            operation.stream();
            (StatusCode::BAD_GATEWAY, "half").into_response()
        }),
        ("a stream to a login page", |operation| {
            operation.stream();
            (StatusCode::FOUND, "log in").into_response()
        }),
        ("too long", |_| (StatusCode::BAD_GATEWAY, "far too long").into_response()),
        ("broken", |_| Frames::of(["half"]).broken().boxed().into_response()),
    ];
    for (case, handler) in cases {
        let adjust = |layer: IdempotencyLayer| responds(layer.policy(Policy::at_most_once()).response_limit(8));
        let fixture = Fixture::new(adjust, handler);
        drop(fixture.ask().await);
        for _ in 0..2 {
            let seen = see(fixture.ask().await).await;
            assert_eq!((seen.status.as_u16(), &*seen.problem()), (409, "response-not-retained"), "{case}");
        }
        assert_eq!(fixture.runs.get(), 1, "{case}");
    }
}

/// Ends the operation of `notification()`, or of `Fixture::ask`, in the place of a runner that never came back.
async fn settle(fixture: &Fixture, key: &str, payload: Option<Bytes>) {
    let key = RecordKey::new("/run", None, key).unwrap();
    let claim = Claim::new(Duration::ZERO, Duration::from_secs(3600));
    fixture.store.claim(&key, &claim).await.unwrap();
    let settlement = Settlement::new(claim.claimant, payload, Duration::from_secs(3600));
    fixture.store.settle_as(&key, claim.claimant, &settlement).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn that_was_found_out_later() {
    let mut broken = Response::new(Bytes::from_static(b"bank is away"));
    *broken.status_mut() = StatusCode::BAD_GATEWAY;
    let of_a_later_version = Bytes::from_static(&[3, 0, 200, 0, 0]);
    let alipay = |layer: IdempotencyLayer| layer.preset(preset::alipay()).after_crash(AfterCrash::Never);
    for (payload, expected) in [
        (Payload::failed().into_bytes(), (500, "handler-failed")),
        (Payload::response(&broken).into_bytes(), (502, "bank is away")),
        // Nobody knows whether these say that all is well.
        (Payload::done().into_bytes(), (409, "response-not-retained")),
        (Some(of_a_later_version), (409, "response-not-retained")),
        (Some(Bytes::new()), (409, "response-not-retained")),
        // An operator has said that it ran.
        (Payload::tombstone().into_bytes(), (200, "success")),
    ] {
        let fixture = Fixture::new(alipay, |_| "success");
        settle(&fixture, "7f0c", payload.clone()).await;
        let seen = see(fixture.send(notification()).await).await;
        assert!(seen.status == expected.0 && seen.body.contains(expected.1), "{payload:?}: {seen:?}");
        assert_eq!(fixture.runs.get(), 0, "{payload:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn that_was_found_out_later_without_a_preset() {
    for on_duplicate in [OnDuplicate::Replay, OnDuplicate::PassThrough] {
        let off = fingerprint::off();
        let fixture = Fixture::new(|layer| layer.fingerprint(off).on_duplicate(on_duplicate), |_| "body");
        settle(&fixture, "k", Payload::failed().into_bytes()).await;
        assert_eq!(see(fixture.ask().await).await.problem(), "handler-failed");
        assert_eq!(fixture.runs.get(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_that_could_not_be_held_is_one() {
    let fixture = Fixture::new(|layer| responds(layer.response_limit(8)), |_| "far too long");
    drop(fixture.ask().await);
    assert_eq!(see(fixture.ask().await).await, Seen::first(200, "success"));
}

#[tokio::test(start_paused = true)]
async fn a_reply_sees_what_was_kept_and_who_asks() {
    let reply = Reply::from_fn(|duplicate| {
        let kept = duplicate.kept().expect("an answer was kept");
        let completed = kept.completed_at().expect("a time");
        assert!(SystemTime::now().duration_since(completed).unwrap() < Duration::from_secs(60));
        assert_eq!(kept.expires_at().unwrap().duration_since(completed).unwrap(), Duration::from_secs(24 * 60 * 60));
        let told = format!(
            "{} {} {:?} for {} by {:?}",
            kept.status().as_u16(),
            kept.headers()["x-order"].to_str().unwrap(),
            kept.body(),
            duplicate.key().key(),
            duplicate.head().headers["x-client"],
        );
        Response::new(Bytes::from(told))
    });
    let fixture = Fixture::new(
        |layer| layer.on_duplicate(OnDuplicate::Respond(reply)),
        |_| (StatusCode::CREATED, [("x-order", "7")], "body"),
    );
    let ask = |client: &str| {
        let mut request = post("/run", "k", "");
        request.headers_mut().insert("x-client", client.parse().unwrap());
        fixture.send(request)
    };
    assert_eq!(see(ask("first").await).await, Seen::first(201, "body"));
    assert_eq!(see(ask("second").await).await, Seen::first(200, "201 7 b\"body\" for k by \"second\""));
}

#[tokio::test(start_paused = true)]
async fn the_default_still_replays() {
    let fixture = Fixture::new(as_it_is, |_| (StatusCode::CREATED, "body"));
    assert_eq!(see(fixture.ask().await).await, Seen::first(201, "body"));
    assert_eq!(see(fixture.ask().await).await, Seen::replay(201, "body"));
}
