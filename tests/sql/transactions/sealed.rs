//! Sealed answers in the transaction of the work.

use std::time::Duration;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Request, Response, StatusCode},
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Operation,
    reconcile::Payload,
    sql::SqlStore,
    store::{
        CachedStore, Claim, Claimed, Entered, FailedAttempt, Finished, Granted, Record, RecordKey, Seal, SealedStore,
        SealingKeys, Store, StoreAdmin, TransactionalStore,
    },
};

use super::process::Process;
use crate::database::TestDatabase;

const MINUTE: Duration = Duration::from_secs(60);

fn keys(byte: u8) -> SealingKeys {
    SealingKeys::new([byte; 32]).unwrap()
}

fn key(name: &str) -> RecordKey {
    RecordKey::new("/", None, name).unwrap()
}

async fn record(store: &impl StoreAdmin, name: &str) -> Record {
    store.inspect(&key(name)).await.unwrap().unwrap()
}

/// Pays in the transaction of the claim, and answers with the status that the request asks for.
async fn pay<D: TestDatabase>(operation: Operation, headers: HeaderMap) -> StatusCode {
    let mut tx = operation.transaction::<D>().unwrap();
    let text = format!("INSERT INTO effects VALUES ('{}')", operation.key());
    D::say(&mut tx, &text).await.unwrap();
    headers["x-status"].to_str().unwrap().parse().unwrap()
}

/// The status, and whether it is a replay.
async fn send<D: TestDatabase>(store: impl TransactionalStore, name: &str, status: &str) -> (u16, bool) {
    let layer = IdempotencyLayer::transactional(store).unscoped().keep_request();
    let app: Router = Router::new().route("/", post(pay::<D>).layer(layer));
    let request = Request::post("/").header("idempotency-key", name).header("x-status", status);
    let response = app.oneshot(request.body(Body::from("7 EUR")).unwrap()).await.unwrap();
    (response.status().as_u16(), response.headers().contains_key("idempotent-replayed"))
}

pub(crate) async fn the_answer_is_sealed_and_committed_with_the_effect<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let with = |keys| SealedStore::new(process.store.clone(), keys);
    assert_eq!(send::<D>(with(keys(1)), "a", "201").await, (201, false));
    let kept = record(&process.store, "a").await;
    assert_eq!([kept.payload_seal(), kept.note_seal()], [Seal::Closed(keys(1).id()); 2]);
    assert_eq!(record(&with(keys(1)), "a").await.note, "7 EUR");
    assert_eq!(send::<D>(with(keys(1)), "a", "201").await, (201, true));
    // Without its key it is a conflict, and no second effect.
    assert_eq!(send::<D>(with(keys(2)), "a", "201").await, (409, false));
    assert_eq!(send::<D>(with(keys(2).accept([1; 32]).unwrap()), "a", "201").await, (201, true));
    assert_eq!(process.effects("a").await, 1);
    // What fails leaves nothing, and the next try runs.
    assert_eq!(send::<D>(with(keys(1)), "b", "502").await, (502, false));
    assert_eq!((process.effects("b").await, process.records().await), (0, 1));
    assert_eq!(send::<D>(with(keys(1)), "b", "201").await, (201, false));
    assert_eq!(process.effects("b").await, 1);
}

pub(crate) async fn a_transaction_that_is_dropped_is_rolled_back<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let store = SealedStore::new(process.store.clone(), keys(1));
    let claim = || Claim::new(MINUTE, MINUTE);
    let Entered::Granted(_, open) = store.enter(&key("a"), &claim()).await.unwrap() else { panic!("a free key") };
    assert!(matches!(store.enter(&key("a"), &claim()).await.unwrap(), Entered::Refused(Claimed::Running { .. })));
    // The wait begins first.
    let key = key("a");
    let (left, ()) = tokio::join!(store.left(&key, MINUTE), async { drop(open) });
    left.unwrap();
    process.is_as_new("a").await;
}

/// What a failure leaves is written outside of the transaction, and sealed too.
pub(crate) async fn a_failure_that_is_recorded_is_sealed<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let store = SealedStore::new(process.store.clone(), keys(1));
    let claim = Claim::new(MINUTE, MINUTE);
    let failed = FailedAttempt::new(Granted::first(&claim), Payload::failed().into_bytes(), MINUTE);
    store.record_failure(&key("a"), &claim, &failed).await.unwrap();
    assert_eq!(record(&process.store, "a").await.payload_seal(), Seal::Closed(keys(1).id()));
    let again = store.claim(&key("a"), &Claim::new(MINUTE, MINUTE)).await.unwrap();
    assert!(matches!(again, Claimed::Settled(payload, _) if payload == failed.payload));
}

pub(crate) async fn around_a_cache<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let cache = MemoryStore::new();
    let store = || SealedStore::new(CachedStore::new(cache.clone(), process.store.clone()), keys(1));
    assert_eq!(send::<D>(store(), "a", "201").await, (201, false));
    for _ in 0..2 {
        assert_eq!(send::<D>(store(), "a", "201").await, (201, true));
    }
    assert_eq!(record(&cache, "a").await.payload_seal(), Seal::Closed(keys(1).id()));
    assert_eq!(process.effects("a").await, 1);
}

type Stores<D> = SealedStore<SqlStore<D>>;

async fn settle_by_hand<D: TestDatabase>(
    State(store): State<Stores<D>>,
    operation: Operation,
) -> Result<Response<Body>, StatusCode> {
    let mut transaction = store.inner().pool().begin().await.unwrap();
    D::say(&mut transaction, "INSERT INTO effects VALUES ('own')").await.unwrap();
    let settlement = operation.settlement(Payload::response(&Response::new(Bytes::from("paid"))));
    let settlement = store.sealed_settlement(operation.record_key(), &settlement).unwrap();
    let settled = store.inner().settle_in(&mut transaction, operation.record_key(), &settlement).await.unwrap();
    assert!(matches!(settled, Finished::Done));
    transaction.commit().await.unwrap();
    Ok(Response::new(Body::from("paid")))
}

/// A handler that settles in a transaction of its own seals the settlement.
pub(crate) async fn a_handler_seals_what_it_settles_by_itself<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let store = SealedStore::new(process.store.clone(), keys(1));
    let layer = IdempotencyLayer::new(store.clone()).unscoped();
    let app = Router::new().route("/", post(settle_by_hand::<D>).layer(layer)).with_state(store.clone());
    for replayed in [false, true] {
        let request = Request::post("/").header("idempotency-key", "a").body(Body::empty()).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers().contains_key("idempotent-replayed")),
            (200, replayed)
        );
    }
    assert_eq!(record(&process.store, "a").await.payload_seal(), Seal::Closed(keys(1).id()));
    assert_eq!(process.effects("own").await, 1);
}
