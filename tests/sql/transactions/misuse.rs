//! What handlers should not do with the transaction, and what comes of it: never a success without its effect, never a
//! pool that is spoiled for others.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, OnDuplicate,
    sql::{NoTransaction, Tx},
};

use super::process::Process;
use crate::database::TestDatabase;

/// The pool has one connection: a transaction that is left on it would show.
async fn small<D: TestDatabase>() -> (Arc<D::Place>, Process<D>) {
    let place = D::place().await;
    let process = Process::<D>::with(&place, 1, |layer| layer.store_timeout(Duration::from_secs(20))).await;
    (place, process)
}

pub(crate) async fn kept_beyond_the_answer<D: TestDatabase>() {
    let (_place, process) = small::<D>().await;
    process.post("a", "insert;keep").await.is_problem(500, "rolled-back");
    // Until it is dropped, it runs.
    process.post("a", "insert").await.is_problem(409, "request-in-progress");
    process.handler.kept.lock().unwrap().clear();
    process.is_as_new("a").await;
}

pub(crate) async fn taken_twice<D: TestDatabase>() {
    let (_place, process) = small::<D>().await;
    process.post("a", "insert;twice").await.is(201);
    assert_eq!(process.effects("a").await, 1);
}

/// PostgreSQL undoes the transaction, others the statement.
pub(crate) async fn an_error_that_is_swallowed<D: TestDatabase>() {
    let (_place, process) = small::<D>().await;
    for key in ["a", "b", "c"] {
        let told = process.post(key, "insert;error").await;
        if D::NAME == "PostgreSQL" {
            told.is_problem(500, "rolled-back");
            assert_eq!((process.effects(key).await, process.records().await), (0, 0));
        } else {
            told.is(201);
            assert_eq!(process.effects(key).await, 1);
        }
    }
}

pub(crate) async fn ended_by_hand<D: TestDatabase>() {
    let (_place, process) = small::<D>().await;
    for _ in 0..3 {
        process.post("a", "insert;run=ROLLBACK").await.is_problem(500, "rolled-back");
        // What came after it stands by itself: the layer cannot undo that.
        process.post("a", "run=ROLLBACK;status=500").await.is(500);
        assert_eq!((process.effects("a").await, process.records().await), (0, 0));
    }
    process.is_as_new("a").await;
}

pub(crate) async fn committed_by_hand<D: TestDatabase>() {
    let place = D::place().await;
    let process = Process::<D>::with(&place, 1, |layer| {
        layer.lease(Duration::from_millis(300)).store_timeout(Duration::from_secs(20))
    })
    .await;
    let told = process.post("a", "insert;run=COMMIT").await;
    // SQLite says that there is nothing to commit; the record is there all the same.
    assert!(told.status == StatusCode::CREATED || D::NAME == "SQLite", "{told:?}");
    assert!(process.post("a", "insert").await.is(201).replayed);
    assert_eq!(process.effects("a").await, 1);
    // Without an answer nobody knows how it ended.
    let died = process.spawn("b", "insert;run=COMMIT;panic").await;
    assert!(died.unwrap_err().is_panic());
    tokio::time::sleep(Duration::from_millis(350)).await;
    process.post("b", "insert").await.is_problem(409, "outcome-unknown");
    process.is_as_new("c").await;
}

pub(crate) async fn a_savepoint_left_open<D: TestDatabase>() {
    let (_place, process) = small::<D>().await;
    process.post("a", "insert;savepoint").await.is_problem(500, "rolled-back");
    // Its connection was closed, which a busy server sees a moment later; until then the key is in use.
    let mut again = process.post("a", "insert;savepoint;status=500").await;
    for _ in 0..100 {
        if again.status != StatusCode::CONFLICT {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        again = process.post("a", "insert;savepoint;status=500").await;
    }
    again.is(500);
    process.is_as_new("a").await;
}

pub(crate) async fn of_another_database<D: TestDatabase>() {
    let slot = tower_idempotency::store::TransactionSlot::new(std::sync::Arc::new(7));
    assert_eq!(Tx::<D>::take(&slot).unwrap_err(), NoTransaction::OtherDatabase);
}

/// It only reads: nothing can be written, and nothing is recorded.
pub(crate) async fn of_a_duplicate_that_passes_through<D: TestDatabase>() {
    let place = D::place().await;
    let passes = |layer: IdempotencyLayer| layer.on_duplicate(OnDuplicate::PassThrough);
    let process = Process::<D>::with(&place, 1, passes).await;
    assert_eq!(process.post("a", "insert").await.is(201).body, "1");
    for _ in 0..2 {
        let duplicate = process.post("a", "read").await;
        assert_eq!((duplicate.is(201).replayed, &*duplicate.body), (false, "0"));
    }
    assert_eq!((process.effects("a").await, process.records().await), (1, 1));

    let layer = passes(IdempotencyLayer::transactional(process.store.clone()));
    let app: Router = Router::new().route("/tx", post(async |_: Tx<D>| StatusCode::CREATED).layer(layer));
    for expected in [StatusCode::CREATED, StatusCode::INTERNAL_SERVER_ERROR] {
        let request = Request::post("/tx").header("idempotency-key", "a").body(Body::empty()).unwrap();
        assert_eq!(app.clone().oneshot(request).await.unwrap().status(), expected);
    }
}
