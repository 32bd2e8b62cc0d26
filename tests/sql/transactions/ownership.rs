//! Whose key it is on a database, and in its transactions.

#[path = "../../http/common/ownership.rs"]
mod asked;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    ConsumerLayer, IdempotencyLayer, Operation, Secret,
    consumer::Consumed,
    fingerprint::Fingerprint,
    sql::SqlStore,
    store::{Record, RecordKey, State, StoreAdmin},
};

use super::process::Process;
use crate::database::TestDatabase;

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32]).unwrap()
}

fn rotated() -> Secret {
    secret(2).accept([1; 32]).unwrap()
}

pub(crate) async fn whose_key_it_is<D: TestDatabase>() {
    let place = D::place().await;
    Process::<D>::start(&place).await;
    asked::whose_key_it_is(|| async { SqlStore::<D>::new(D::pool(&place, 4).await) }).await;
}

/// A rollback leaves nothing of a caller or of a secret: each attempt derives its child keys from its own.
pub(crate) async fn child_keys_after_a_rollback<D: TestDatabase>() {
    let place = D::place().await;
    let before = Process::<D>::with(&place, 4, |layer| layer.secret(secret(1))).await;
    let anns = before.post_as("ann", "a", "insert;child;status=500").await.is(500).body.clone();
    assert_eq!((anns.len(), before.records().await), (64, 0));
    assert_eq!(before.post_as("ann", "a", "insert;child;status=500").await.is(500).body, anns);
    assert_ne!(before.post_as("bob", "a", "insert;child;status=500").await.is(500).body, anns);

    let after = Process::<D>::with(&place, 4, |layer| layer.secret(rotated())).await;
    let anew = after.post_as("ann", "a", "insert;child;status=500").await.is(500).body.clone();
    assert_ne!(anew, anns, "nothing is left that says which secret it was");
    assert_eq!(after.post_as("ann", "a", "insert;child").await.is(201).body, anew);
    after.post_as("bob", "a", "insert;child").await.is_problem(422, "other-caller");
    assert_eq!((after.effects("a").await, after.records().await), (1, 1));
}

/// A message's attempt is recorded although its transaction is rolled back, and with it what its child keys derive from.
pub(crate) async fn child_keys_of_a_message_outlive_a_rotation<D: TestDatabase>() {
    struct Payout(Option<Operation>);

    async fn fail(payout: Payout) -> Result<(), String> {
        Err(payout.0.unwrap().child_key("bank"))
    }

    let place = D::place().await;
    let deliver = async |secret: Secret| {
        let process = Process::<D>::start(&place).await;
        let (name, key) = ("payouts", |_: &Payout| "a".to_owned());
        ConsumerLayer::transactional_with_fingerprint(process.store.clone(), name, key, |_| Fingerprint::OFF)
            .operation(|payout, operation| payout.0 = Some(operation))
            .secret(secret)
            .layer(service_fn(fail))
            .oneshot(Payout(None))
            .await
            .unwrap()
    };
    let Consumed::Failed { error: first, attempt: 1, .. } = deliver(secret(1)).await else {
        panic!("the first attempt")
    };
    assert_eq!(first.len(), 64);
    for made in 2..4 {
        let again = deliver(rotated()).await;
        assert!(
            matches!(&again, Consumed::Failed { error, attempt, .. } if *error == first && *attempt == made),
            "{again:?}"
        );
    }
    // Without the secret that it began with, it is given back and does not run.
    let without = deliver(secret(2)).await;
    assert!(matches!(without, Consumed::Unavailable { .. }), "{without:?}");
}

const UNDONE: [u16; 3] = [401, 407, 429];

/// Whether or not the operation began: what it did is rolled back.
pub(crate) async fn answers_that_undo_an_attempt_leave_nothing<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    for status in UNDONE {
        for began in ["insert", "insert;began", "insert;stream"] {
            process.post_as("ann", "a", &format!("{began};status={status}")).await.is(status);
            assert_eq!((process.effects("a").await, process.records().await), (0, 0), "{status}");
        }
        let stranger = process.post_as("bob", &format!("b{status}"), "insert").await;
        assert_eq!(stranger.is(201).body, "1");
        process.run("DELETE FROM idempotency_records").await;
    }
    process.is_as_new("a").await;
}

/// What an earlier attempt has left in lease mode is there as it was: the count, the caller, and the time that it is kept.
pub(crate) async fn an_undone_attempt_leaves_the_record_as_it_was<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let layer = IdempotencyLayer::new(process.store.clone());
    let leased: Router = Router::new().route("/", post(async || StatusCode::INTERNAL_SERVER_ERROR).layer(layer));
    let seen = |record: &Record| (record.state, record.attempt, record.claimant, record.caller, record.origin);
    for (status, attempt) in UNDONE.into_iter().zip(1..) {
        let key = format!("k{attempt}");
        let request = Request::post("/").header("authorization", "Bearer ann").header("idempotency-key", &key);
        let failed = leased.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(failed.status(), 500);
        let record_key = RecordKey::new("/", None, &key).unwrap();
        let before = process.store.inspect(&record_key).await.unwrap().unwrap();
        assert_eq!((before.state, before.attempt), (State::Released, 1));

        process.post_as("ann", &key, &format!("insert;status={status}")).await.is(status);
        let after = process.store.inspect(&record_key).await.unwrap().unwrap();
        assert_eq!(seen(&after), seen(&before), "{status}");
        assert!(after.expires_in <= before.expires_in);
        process.post_as("bob", &key, "insert").await.is_problem(422, "other-caller");
        assert_eq!(process.post_as("ann", &key, "insert").await.is(201).body, "2");
        assert_eq!(process.effects(&key).await, 1);
    }
}
