//! Sealed records as clients, brokers and operators see them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderMap, StatusCode, header::RETRY_AFTER},
    response::IntoResponse,
    routing::post,
};
use bytes::Bytes;
use http::Response;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, OnDuplicate, Operation, Policy,
    policy::Reply,
    store::{Claim, Claimed, RecordKey, Seal, SealedStore, SealingKeys, Settlement, Store, StoreAdmin},
};

use crate::{
    common::{Seen, post as request, see},
    tracing_events::Heard,
};

const MINUTE: Duration = Duration::from_secs(60);

fn keys(byte: u8) -> SealingKeys {
    SealingKeys::new([byte; 32]).unwrap()
}

fn key(name: &str) -> RecordKey {
    RecordKey::new("/orders", None, name).unwrap()
}

/// A shop whose records are in one store, whatever wraps it.
#[derive(Clone, Default)]
struct Shop {
    records: MemoryStore,
    runs: Arc<AtomicUsize>,
}

impl Shop {
    fn sealed(&self, keys: SealingKeys) -> SealedStore<MemoryStore> {
        SealedStore::new(self.records.clone(), keys)
    }

    fn layer(store: impl Store) -> IdempotencyLayer {
        IdempotencyLayer::new(store).unscoped().keep_request()
    }

    async fn send(&self, layer: IdempotencyLayer, key: &str) -> (HeaderMap, Seen) {
        let runs = self.runs.clone();
        let handler = move |operation: Operation| async move {
            if operation.is_duplicate() {
                return (StatusCode::OK, [("x-run", "none")], "a duplicate").into_response();
            }
            runs.fetch_add(1, SeqCst);
            (StatusCode::CREATED, [("x-run", "first")], "order 7").into_response()
        };
        let app: Router = Router::new().route("/orders", post(handler).layer(layer));
        let response = app.oneshot(request("/orders", key, "one tea")).await.unwrap();
        (response.headers().clone(), see(response).await)
    }

    async fn order(&self, keys: SealingKeys, key: &str) -> Seen {
        self.send(Self::layer(self.sealed(keys)), key).await.1
    }

    fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }

    /// Puts another answer into the record of a request, as somebody does who can write to the store.
    async fn plant(&self, key: &RecordKey, payload: Bytes) {
        let record = self.records.inspect(key).await.unwrap().unwrap();
        self.records.forget(key).await.unwrap();
        let mut claim = Claim::new(MINUTE, MINUTE);
        (claim.fingerprint, claim.caller) = (record.fingerprint, record.caller);
        assert!(matches!(self.records.claim(key, &claim).await.unwrap(), Claimed::Granted(_)));
        self.records.settle(key, &Settlement::new(claim.claimant, Some(payload), MINUTE)).await.unwrap();
    }

    async fn payload(&self, key: &RecordKey) -> Bytes {
        self.records.inspect(key).await.unwrap().unwrap().payload.unwrap()
    }
}

#[track_caller]
fn is_unreadable(seen: &Seen) {
    assert_eq!((seen.status, &*seen.problem()), (StatusCode::CONFLICT, "answer-unreadable"));
    assert!(!seen.replayed && seen.body.contains("\"retryable\":true"), "{seen:?}");
}

#[tokio::test]
async fn a_replay_is_the_first_answer_of_which_the_store_shows_nothing() {
    let shop = Shop::default();
    assert_eq!(shop.order(keys(1), "a").await, Seen::first(201, "order 7"));
    let (headers, replay) = shop.send(Shop::layer(shop.sealed(keys(1))), "a").await;
    assert_eq!((replay, &headers["x-run"]), (Seen::replay(201, "order 7"), &"first".parse().unwrap()));
    let kept = shop.records.inspect(&key("a")).await.unwrap().unwrap();
    assert_eq!([kept.payload_seal(), kept.note_seal()], [Seal::Closed(keys(1).id()); 2]);
    let shown = [&kept.payload.unwrap()[..], &kept.note].concat();
    for part in ["order 7", "x-run", "tea"] {
        assert!(!shown.windows(part.len()).any(|bytes| bytes == part.as_bytes()), "{part}");
    }
}

#[tokio::test]
async fn a_lost_key_is_a_conflict_and_never_a_second_run() {
    let shop = Shop::default();
    shop.order(keys(1), "a").await;
    let (heard, _listening) = Heard::listen();
    for _ in 0..2 {
        let (headers, refused) = shop.send(Shop::layer(shop.sealed(keys(2))), "a").await;
        is_unreadable(&refused);
        assert!(headers.contains_key(RETRY_AFTER));
        // The operator learns which key it is.
        let named = heard.take().into_iter().find(|line| line.starts_with("ERROR")).unwrap();
        assert!(named.contains(&format!("key_id={}", keys(1).id())) && named.contains("not at hand"), "{named}");
        assert!(named.contains("/orders"), "{named}");
    }
    assert_eq!(shop.runs(), 1);
    assert_eq!(shop.order(keys(2).accept([1; 32]).unwrap(), "a").await, Seen::replay(201, "order 7"));
}

#[tokio::test]
async fn an_answer_that_was_changed_or_moved_is_a_conflict() {
    let shop = Shop::default();
    for name in ["a", "b"] {
        shop.order(keys(1), name).await;
    }
    let (mut a, b) = (shop.payload(&key("a")).await.to_vec(), shop.payload(&key("b")).await);
    *a.last_mut().unwrap() ^= 1;
    for planted in [a.into(), b] {
        shop.plant(&key("a"), planted).await;
        is_unreadable(&shop.order(keys(1), "a").await);
    }
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn no_policy_takes_what_it_cannot_read_for_a_success() {
    let shop = Shop::default();
    shop.order(keys(1), "a").await;
    let with = |policy| Shop::layer(shop.sealed(keys(2))).policy(policy);
    let respond = OnDuplicate::Respond(Reply::fixed(Response::new("success".into())));
    for on_duplicate in [OnDuplicate::Replay, OnDuplicate::PassThrough, respond] {
        let policy = Policy::replay().on_duplicate(on_duplicate);
        is_unreadable(&shop.send(with(policy), "a").await.1);
    }
    // What is refused without a look at the answer is refused as ever.
    let refused = shop.send(with(Policy::reject()), "a").await.1;
    assert_eq!((refused.status, &*refused.problem()), (StatusCode::CONFLICT, "duplicate-request"));
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn records_from_before_are_refused_until_they_are_accepted() {
    let shop = Shop::default();
    shop.send(Shop::layer(shop.records.clone()), "a").await;
    is_unreadable(&shop.order(keys(1), "a").await);
    let accepting = || Shop::layer(shop.sealed(keys(1)).accept_unsealed());
    assert_eq!(shop.send(accepting(), "a").await.1, Seen::replay(201, "order 7"));
    assert_eq!(shop.send(accepting(), "b").await.1, Seen::first(201, "order 7"));
    assert_eq!(shop.order(keys(1), "b").await, Seen::replay(201, "order 7"));
}

/// During a deploy a process that does not seal yet meets the answer of one that does.
#[tokio::test]
async fn a_layer_whose_store_is_not_sealed_refuses_what_is_sealed() {
    let shop = Shop::default();
    shop.order(keys(1), "a").await;
    is_unreadable(&shop.send(Shop::layer(shop.records.clone()), "a").await.1);
    assert_eq!(shop.runs(), 1);
}

#[cfg(feature = "json")]
mod beside_http {
    use std::convert::Infallible;

    use tower::{Layer, service_fn};
    use tower_idempotency::{ConsumerLayer, Once, Refusal, run::RunError};

    use super::*;

    /// Whether it was handled or has failed for good is not known: it is neither acknowledged nor dead-lettered.
    #[tokio::test]
    async fn a_message_whose_outcome_cannot_be_read_is_given_back() {
        let store = MemoryStore::new();
        let handle = |keys, succeeds: bool| {
            let layer =
                ConsumerLayer::new(SealedStore::new(store.clone(), keys), "payouts", |id: &&str| (*id).to_owned());
            let layer = layer.permanent_errors(|_: &&str| true);
            let service =
                service_fn(move |_| async move { if succeeds { Ok("paid") } else { Err("no such account") } });
            let service = layer.layer(service);
            async move { format!("{:?}", service.oneshot(if succeeds { "good" } else { "bad" }).await) }
        };
        assert_eq!(handle(keys(1), true).await, "Ok(Executed(\"paid\"))");
        assert_eq!(handle(keys(1), true).await, "Ok(AlreadyDone)");
        assert!(handle(keys(1), false).await.contains("FailedPermanently"));
        assert!(handle(keys(1), false).await.contains("FailedPermanently"));
        for succeeds in [true, false] {
            assert_eq!(handle(keys(2), succeeds).await, "Ok(Unavailable { retry_after: 1s })");
        }
    }

    #[tokio::test]
    async fn a_function_whose_value_cannot_be_read_is_refused() {
        let store = MemoryStore::new();
        let run = async |keys| {
            let once = Once::new(SealedStore::new(store.clone(), keys), "payouts");
            once.run("order-7", async |_| Ok::<_, Infallible>(7)).await
        };
        for _ in 0..2 {
            assert_eq!(run(keys(1)).await, Ok(7));
        }
        assert_eq!(run(keys(2)).await, Err(RunError::Refused(Refusal::AnswerUnreadable)));
    }
}
