//! Records that are there before.

use std::time::Duration;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Request, Response, StatusCode},
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, Operation,
    fingerprint::Fingerprint,
    reconcile::Payload,
    sql::SqlStore,
    store::{
        Caller, Claim, Claimed, Committed, Entered, Finished, Mismatch, RecordKey, Release, Settlement, Store,
        StoreAdmin, TransactionalStore,
    },
};

use super::process::Process;
use crate::database::TestDatabase;

const MINUTE: Duration = Duration::from_secs(60);

fn key() -> RecordKey {
    RecordKey::new("/", None, "a").unwrap()
}

/// The claim of a request to the process's route, in lease mode.
async fn claimed<D: TestDatabase>(process: &Process<D>, lease: Duration) -> Claim {
    // The fingerprint and the caller of the request are those that the layer computes: asked from a run.
    process.post("a", "nothing").await.is(201);
    let seen = process.store.inspect(&key()).await.unwrap().unwrap();
    process.store.forget(&key()).await.unwrap();
    let mut claim = Claim::new(lease, MINUTE);
    (claim.fingerprint, claim.caller) = (seen.fingerprint, seen.caller);
    process.store.claim(&key(), &claim).await.unwrap();
    claim
}

pub(crate) async fn over_a_record_that_expired<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let claim = claimed(&process, MINUTE).await;
    process.store.settle(&key(), &Settlement::new(claim.claimant, None, Duration::ZERO)).await.unwrap();
    process.is_as_new("a").await;
    assert!(process.post("a", "insert").await.is(201).replayed);
}

pub(crate) async fn over_one_that_was_released<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let claim = claimed(&process, MINUTE).await;
    process.store.release(&key(), &Release::new(claim.claimant, MINUTE)).await.unwrap();
    process.post("a", "insert;status=500").await.is(500);
    assert_eq!(process.post("a", "insert").await.is(201).body, "2", "the failed one left no trace");
    assert_eq!(process.effects("a").await, 1);
}

pub(crate) async fn over_a_lapsed_one<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let late = claimed(&process, Duration::ZERO).await;
    assert_eq!(process.post("a", "insert").await.is(201).body, "2");
    let settled = process.store.settle(&key(), &Settlement::new(late.claimant, None, MINUTE)).await.unwrap();
    assert!(matches!(settled, Finished::Refused(_)), "{settled:?}");
}

pub(crate) async fn beside_a_living_one<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    claimed(&process, MINUTE).await;
    process.post("a", "insert").await.is_problem(409, "request-in-progress");
    assert_eq!(process.effects("a").await, 0);
}

pub(crate) async fn another_request_is_told<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let first = process.spawn("a", "insert;gate");
    process.started().await;
    process.send("a", "insert", "other").await.is_problem(422, "key-reused");
    process.go_on();
    first.await.unwrap().is(201);
    process.send("a", "insert", "other").await.is_problem(422, "key-reused");
}

/// A handler behind a layer of the lease mode settles in a transaction of its own.
pub(crate) async fn settled_by_the_handler<D: TestDatabase>() {
    async fn pay<D: TestDatabase>(
        State(store): State<SqlStore<D>>,
        operation: Operation,
    ) -> Result<Response<Body>, StatusCode> {
        let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
        let mut transaction = store.pool().begin().await.map_err(failed)?;
        D::say(&mut transaction, "INSERT INTO effects VALUES ('own')").await.map_err(failed)?;
        let response = Response::new(Bytes::from("paid"));
        let settlement = operation.settlement(Payload::response(&response));
        if operation.key() == "stranger" {
            let nobody = Settlement::new(tower_idempotency::store::Claimant::random(), None, MINUTE);
            let lost = store.settle_in(&mut transaction, operation.record_key(), &nobody).await.unwrap();
            assert!(matches!(lost, Finished::Refused(Some(_))), "{lost:?}");
            transaction.rollback().await.map_err(failed)?;
            return Err(StatusCode::CONFLICT);
        }
        let done = store.settle_in(&mut transaction, operation.record_key(), &settlement).await.unwrap();
        assert!(matches!(done, Finished::Done), "{done:?}");
        let again = store.settle_in(&mut transaction, operation.record_key(), &settlement).await.unwrap();
        assert!(matches!(again, Finished::AlreadyDone), "{again:?}");
        transaction.commit().await.map_err(failed)?;
        Ok(response.map(Body::from))
    }

    let process = Process::<D>::start(&D::place().await).await;
    let store = process.store.clone();
    let layer = IdempotencyLayer::new(store.clone());
    let app: Router = Router::new().route("/own", post(pay::<D>).layer(layer)).with_state(store);
    let ask = async |key: &str| {
        let request = Request::post("/own").header("idempotency-key", key).body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap()
    };
    assert_eq!(ask("stranger").await.status(), StatusCode::CONFLICT);
    assert_eq!(process.effects("own").await, 0);
    for replayed in [false, true] {
        let response = ask("mine").await;
        assert_eq!(
            (response.status(), response.headers().contains_key("idempotent-replayed")),
            (StatusCode::OK, replayed)
        );
    }
    assert_eq!(process.effects("own").await, 1);
}

/// A request that comes while a transaction runs is compared with its caller first, and then with its content. After a rollback
/// nothing of either is left.
pub(crate) async fn a_transaction_knows_its_caller<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let (store, key) = (&process.store, RecordKey::new("/", None, "callers").unwrap());
    let by = |caller: u8, content: u8| {
        let mut claim = Claim::new(MINUTE, MINUTE);
        claim.caller = Caller::from_parts(1, [caller; 16]);
        claim.fingerprint = Fingerprint::from_parts(1, [content; 32]);
        claim
    };
    let Entered::Granted(granted, transaction) = store.enter(&key, &by(1, 1)).await.unwrap() else {
        panic!("the key is free")
    };
    assert!(granted.caller_is_new && granted.origin.caller == by(1, 1).caller);
    for (caller, content, expected) in
        [(2, 1, Mismatch::Caller), (2, 2, Mismatch::Caller), (1, 2, Mismatch::Fingerprint)]
    {
        let refused = store.enter(&key, &by(caller, content)).await.unwrap();
        assert!(matches!(refused, Entered::Refused(Claimed::Mismatch(what)) if what == expected), "{refused:?}");
    }
    transaction.roll_back().await.unwrap();
    assert!(store.inspect(&key).await.unwrap().is_none());

    let other = by(2, 2);
    let Entered::Granted(_, transaction) = store.enter(&key, &other).await.unwrap() else { panic!("it is free again") };
    let settlement = Settlement::new(other.claimant, Some("kept".into()), MINUTE);
    assert!(matches!(transaction.commit(settlement).await.unwrap(), Committed::Done));
    let record = store.inspect(&key).await.unwrap().unwrap();
    assert_eq!((record.attempt, record.caller, record.origin), (1, other.caller, other.origin()));
}
