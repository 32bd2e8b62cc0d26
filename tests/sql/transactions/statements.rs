//! Claims and settlements as statements, behind the layer and without it.

use std::time::Duration;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Request, Response, StatusCode},
    routing::post,
};
use http_body_util::BodyExt;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, Operation,
    reconcile::Payload,
    sql::SqlStore,
    store::{Claim, Claimant, RecordKey, Settlement, State as RecordState, StoreAdmin},
};

use super::process::Process;
use crate::database::TestDatabase;

const MINUTE: Duration = Duration::from_secs(60);

async fn pay<D: TestDatabase>(
    State(store): State<SqlStore<D>>,
    operation: Operation,
) -> Result<Response<Body>, StatusCode> {
    let mut transaction = store.pool().begin().await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    D::say(&mut transaction, "INSERT INTO effects VALUES ('own')").await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    let response = Response::builder().status(201).header("x-receipt", "7").body(Bytes::from("paid")).unwrap();
    let mut settlement = operation.settlement(Payload::response(&response));
    if operation.key() == "stranger" {
        settlement = Settlement::new(Claimant::random(), None, MINUTE);
    }
    let last_step = store.settle_statement(operation.record_key(), &settlement);
    if D::execute(&mut transaction, &last_step).await.unwrap() != 1 {
        transaction.rollback().await.unwrap();
        return Err(StatusCode::CONFLICT);
    }
    assert_eq!(D::execute(&mut transaction, &last_step).await.unwrap(), 0, "it is settled already");
    transaction.commit().await.unwrap();
    // What its client receives is not what was recorded: the layer must not settle once more.
    Ok(Response::new(Body::from("another answer")))
}

/// A handler behind a layer of the lease mode executes the settlement in a transaction of its own; the layer leaves it so.
pub(crate) async fn a_handler_settles_by_a_statement<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let store = process.store.clone();
    let layer = IdempotencyLayer::new(store.clone());
    let app: Router = Router::new().route("/own", post(pay::<D>).layer(layer)).with_state(store.clone());
    let ask = async |key: &str| {
        let request = Request::post("/own").header("idempotency-key", key).body(Body::empty()).unwrap();
        let (head, body) = app.clone().oneshot(request).await.unwrap().into_parts();
        (head, body.collect().await.unwrap().to_bytes())
    };
    assert_eq!(ask("stranger").await.0.status, StatusCode::CONFLICT);
    assert_eq!(process.effects("own").await, 0);
    let record = store.inspect(&RecordKey::new("/own", None, "stranger").unwrap()).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Released);

    assert_eq!(ask("mine").await.1, "another answer");
    for _ in 0..2 {
        let (head, body) = ask("mine").await;
        assert!(head.headers.contains_key("idempotent-replayed"));
        assert_eq!(
            (head.status.as_u16(), &head.headers["x-receipt"], &body[..]),
            (201, &"7".parse().unwrap(), &b"paid"[..])
        );
    }
    assert_eq!(process.effects("own").await, 1);
}

/// Claim, effect and settlement in one transaction of the application's own.
pub(crate) async fn a_key_is_claimed_by_a_statement<D: TestDatabase>() {
    let place = D::place().await;
    let process = Process::<D>::start(&place).await;
    let (store, key) = (&process.store, RecordKey::new("payouts", None, "a").unwrap());
    let begin = if D::NAME == "SQLite" { "BEGIN IMMEDIATE" } else { "BEGIN" };
    let pools = [D::pool(&place, 1).await, D::pool(&place, 1).await];
    let [mut one, mut other] = [pools[0].acquire().await.unwrap(), pools[1].acquire().await.unwrap()];
    let claim = || Claim::new(MINUTE, MINUTE);

    let mine = claim();
    D::say(&mut one, begin).await.unwrap();
    assert_eq!(D::execute(&mut one, &store.claim_statement(&key, &mine)).await.unwrap(), 1);
    assert!(store.inspect(&key).await.unwrap().is_none(), "nobody else sees it");
    if D::NAME == "SQLite" {
        assert!(D::say(&mut other, begin).await.is_err(), "there is one writer");
    } else {
        D::say(&mut other, begin).await.unwrap();
        let refused = D::execute(&mut other, &store.claim_statement(&key, &claim())).await;
        match D::NAME {
            "MySQL" => assert!(refused.unwrap_err().to_string().contains("1205"), "a lock that is not waited for"),
            _ => assert_eq!(refused.unwrap(), 0),
        }
        D::say(&mut other, "ROLLBACK").await.unwrap();
    }
    D::say(&mut one, "INSERT INTO effects VALUES ('a')").await.unwrap();
    let settlement = Settlement::new(mine.claimant, Some("kept".into()), MINUTE);
    for changed in [1, 0] {
        assert_eq!(D::execute(&mut one, &store.settle_statement(&key, &settlement)).await.unwrap(), changed);
    }
    D::say(&mut one, "COMMIT").await.unwrap();

    let record = store.inspect(&key).await.unwrap().unwrap();
    assert_eq!((record.state, record.claimant, record.attempt), (RecordState::Settled, mine.claimant, 1));
    assert_eq!(record.payload.as_deref(), Some(&b"kept"[..]));
    D::say(&mut other, begin).await.unwrap();
    assert_eq!(D::execute(&mut other, &store.claim_statement(&key, &claim())).await.unwrap(), 0, "it is settled");
    D::say(&mut other, "ROLLBACK").await.unwrap();
    assert_eq!(process.effects("a").await, 1);
}
