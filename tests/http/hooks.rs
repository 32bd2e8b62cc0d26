//! The application's own steps at a replay and at keeping an answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode},
    response::IntoResponse,
    routing::post,
};
use bytes::Bytes;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, Keep, MemoryStore, OnDuplicate, Policy, Tokens, WhileRunning,
    policy::{ForDuplicates, Reply},
    store::{RecordKey, StoreAdmin},
};

use crate::common::{Counter, Seen, post as send, see};

const SECRET: &str = "k-29c1";

fn forbidden() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"no longer yours"));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

struct Place {
    app: Router,
    store: MemoryStore,
}

impl Place {
    fn new(set: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        let (store, runs) = (MemoryStore::new(), Counter::default());
        let handler = move |body: String| async move {
            if body == "slow" {
                sleep(Duration::from_secs(5)).await;
            }
            format!("{} {SECRET}", runs.next())
        };
        let layer = set(IdempotencyLayer::new(store.clone()));
        Self { app: Router::new().route("/run", post(handler)).layer(layer), store }
    }

    async fn ask(&self, key: &str, body: &str) -> Seen {
        see(self.app.clone().oneshot(send("/run", key, body)).await.unwrap()).await
    }

    /// Returns what the store has of an answer.
    async fn kept(&self, key: &str) -> Option<Bytes> {
        let key = RecordKey::new("/run", None, key).unwrap();
        self.store.inspect(&key).await.unwrap().unwrap().payload
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_replay_is_seen_changed_and_refused() {
    let revoked = Arc::new(AtomicBool::new(false));
    let place = Place::new({
        let revoked = revoked.clone();
        move |layer| {
            layer.on_replay(move |head, mut kept| {
                let revoked = revoked.load(Ordering::SeqCst);
                async move {
                    assert_eq!((head.uri.path(), kept.status()), ("/run", StatusCode::OK));
                    assert!(kept.completed_at().is_some() && kept.headers().contains_key("content-type"));
                    if revoked {
                        return Err(forbidden());
                    }
                    kept.headers_mut().insert("x-seen", "yes".parse().unwrap());
                    kept.set_status(StatusCode::ACCEPTED);
                    kept.set_body("changed");
                    Ok(kept)
                }
            })
        }
    });
    assert_eq!(place.ask("a", "").await, Seen::first(200, "1 k-29c1"));
    assert_eq!(place.ask("a", "").await, Seen::replay(202, "changed"));
    revoked.store(true, Ordering::SeqCst);
    assert_eq!(place.ask("a", "").await, Seen::first(403, "no longer yours"));
    // The record is as it was, and the handler has not run.
    revoked.store(false, Ordering::SeqCst);
    assert_eq!(place.ask("a", "").await, Seen::replay(202, "changed"));
    assert_eq!(place.ask("b", "").await, Seen::first(200, "2 k-29c1"));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_shows_no_kept_answer() {
    type Set = fn(IdempotencyLayer) -> IdempotencyLayer;
    let sets: [Set; 3] = [
        |layer| layer.on_replay(|_, _| async { panic!("in its future") }),
        |layer| {
            layer.on_replay(|_, kept| {
                assert!(kept.body().is_empty(), "before its future");
                async { Ok(kept) }
            })
        },
        |layer| layer.hook_timeout(Duration::from_secs(2)).on_replay(|_, _| std::future::pending()),
    ];
    for (number, set) in sets.into_iter().enumerate() {
        let place = Place::new(set);
        assert_eq!(place.ask("a", "").await.status, 200);
        let began = Instant::now();
        let answer = place.app.clone().oneshot(send("/run", "a", "")).await.unwrap();
        assert!(answer.headers().contains_key("retry-after"));
        let seen = see(answer).await;
        assert_eq!(seen.status, 503, "{number}");
        assert_eq!(seen.problem(), "replay-not-decided", "{number}");
        assert_eq!(began.elapsed(), Duration::from_secs(if number == 2 { 2 } else { 0 }));
        assert!(place.kept("a").await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_has_waited_passes_the_hook_too() {
    let place = Place::new(|layer| {
        layer.while_running(WhileRunning::Wait(Duration::from_secs(60))).on_replay(|_, _| async { Err(forbidden()) })
    });
    let (first, second) = tokio::join!(place.ask("a", "slow"), async {
        sleep(Duration::from_secs(1)).await;
        place.ask("a", "slow").await
    });
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 403));
}

#[tokio::test]
async fn what_no_policy_replays_is_not_asked_about() {
    let asked = Arc::new(AtomicBool::new(false));
    let of = |set: fn(IdempotencyLayer) -> IdempotencyLayer| {
        let asked = asked.clone();
        Place::new(move |layer| {
            set(layer).on_replay(move |_, kept| {
                asked.store(true, Ordering::SeqCst);
                async { Ok(kept) }
            })
        })
    };
    for (set, status) in [
        ((|layer| layer.policy(Policy::reject())) as fn(IdempotencyLayer) -> IdempotencyLayer, 409),
        (|layer| layer.on_duplicate(OnDuplicate::Respond(Reply::fixed(Response::new("success".into())))), 200),
        (|layer| layer.on_duplicate(OnDuplicate::PassThrough), 200),
        (|layer| layer.response_limit(0), 409),
    ] {
        let place = of(set);
        place.ask("a", "").await;
        assert_eq!(place.ask("a", "").await.status, status);
        assert!(!asked.load(Ordering::SeqCst));
    }
}

#[tokio::test]
async fn what_is_kept_is_changed_and_the_first_client_receives_all_of_it() {
    let place = Place::new(|layer| {
        layer.on_keep(|key, mut kept| async move {
            assert_eq!(key.key(), "a");
            let body = String::from_utf8_lossy(kept.body()).replace(SECRET, "shown once");
            kept.set_body(body);
            kept.headers_mut().insert("x-masked", "yes".parse().unwrap());
            kept
        })
    });
    assert_eq!(place.ask("a", "").await, Seen::first(200, "1 k-29c1"));
    assert!(!contains(&place.kept("a").await.unwrap(), SECRET));
    let replay = place.app.clone().oneshot(send("/run", "a", "")).await.unwrap();
    assert_eq!(replay.headers()["x-masked"], "yes");
    assert_eq!(see(replay).await, Seen::replay(200, "1 shown once"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_could_not_be_changed_is_not_kept() {
    let panics: fn(IdempotencyLayer) -> IdempotencyLayer = |layer| layer.on_keep(|_, _| async { panic!("no mask") });
    let hangs: fn(IdempotencyLayer) -> IdempotencyLayer = |layer| layer.on_keep(|_, _| std::future::pending());
    for set in [panics, hangs] {
        let place = Place::new(set);
        assert_eq!(place.ask("a", "").await, Seen::first(200, "1 k-29c1"));
        assert_eq!(place.kept("a").await, None);
        assert_eq!(place.ask("a", "").await.problem(), "response-not-retained");
    }
}

#[tokio::test]
async fn a_handler_says_what_duplicates_receive() {
    let handler = |body: String| async move {
        let mut answer = (StatusCode::CREATED, format!("{body} {SECRET}")).into_response();
        if body != "plain" {
            let mut for_duplicates = Response::new(Bytes::from("shown once"));
            *for_duplicates.status_mut() = StatusCode::ALREADY_REPORTED;
            answer.extensions_mut().insert(ForDuplicates(for_duplicates));
        }
        if body == "failed" {
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
        }
        answer
    };
    let app = Router::new().route("/run", post(handler)).layer(IdempotencyLayer::new(MemoryStore::new()));
    let ask = async |body: &'static str| {
        let request = Request::post("/run").header("idempotency-key", body).body(Body::from(body)).unwrap();
        see(app.clone().oneshot(request).await.unwrap()).await
    };
    assert_eq!(ask("secret").await, Seen::first(201, "secret k-29c1"));
    assert_eq!(ask("secret").await, Seen::replay(208, "shown once"));
    assert_eq!(ask("plain").await, Seen::first(201, "plain k-29c1"));
    assert_eq!(ask("plain").await, Seen::replay(201, "plain k-29c1"));
    // An answer that is not kept is not replaced either.
    assert_eq!(ask("failed").await.status, 502);
    assert_eq!(ask("failed").await, Seen::first(502, "failed k-29c1"));
}

/// A failure that says something once, and what its duplicates receive.
async fn failed_with_a_secret() -> Response<Body> {
    let mut answer = (StatusCode::UNPROCESSABLE_ENTITY, SECRET).into_response();
    answer.extensions_mut().insert(ForDuplicates(Response::new("shown once".into())));
    answer
}

#[tokio::test]
async fn a_failure_that_brings_a_new_token_is_kept_without_its_secret() {
    let tokens = Tokens::new(MemoryStore::new());
    let layer = tokens.layer("order").rotate_on_failure();
    let app = Router::new().route("/run", post(failed_with_a_secret).layer(layer));
    let token = tokens.issue("order", None).await.unwrap();
    let ask = async || {
        let request = Request::post("/run").header("x-submit-token", token.as_str()).body(Body::empty()).unwrap();
        let answer = app.clone().oneshot(request).await.unwrap();
        (answer.headers()["x-submit-token"].clone(), see(answer).await)
    };
    let (new, first) = ask().await;
    assert_eq!(first, Seen::first(422, SECRET));
    assert_eq!(ask().await, (new, Seen::replay(422, "shown once")));
}

#[tokio::test]
async fn a_layer_further_out_keeps_no_secret_either() {
    let layer = |route: &'static str| IdempotencyLayer::new(MemoryStore::new()).route(route).keep(Keep::EVERYTHING);
    let app = Router::new().route("/run", post(failed_with_a_secret)).layer(layer("inner")).layer(layer("outer"));
    let ask = async || see(app.clone().oneshot(send("/run", "a", "")).await.unwrap()).await;
    assert_eq!(ask().await, Seen::first(422, SECRET));
    assert_eq!(ask().await, Seen::replay(200, "shown once"));
}
