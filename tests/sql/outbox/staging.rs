//! What is staged is there if and only if the transaction was committed.

use std::{collections::HashSet, time::SystemTime};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Request, StatusCode},
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer,
    sql::{
        Tx,
        outbox::{Message, Outbox, Relay},
    },
};

use super::shop::{Broker, Shop, message};
use crate::database::TestDatabase;

pub(crate) async fn committed_is_sent<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let bytes: Vec<u8> = (0..=255).collect();
    let full = Message::new("order.paid", bytes).key("order 7 ✓").header("content-type", "a/b").header("x", "ä: \n%");
    let bare = Message::new("ping", "");
    shop.stage([full.clone(), bare.clone()]).await;
    let broker = Broker::default();
    let relay = Relay::new(shop.outbox.clone(), broker.sender());
    assert_eq!(relay.run_once().await.unwrap().sent, 2);
    let mut sent = broker.all();
    sent.sort_by_key(|outgoing| outgoing.message.topic.clone());
    assert_eq!([&sent[0].message, &sent[1].message], [&full, &bare]);
    for outgoing in sent {
        let age = SystemTime::now().duration_since(outgoing.staged).unwrap_or_default();
        assert_eq!((outgoing.attempt, age.as_secs() < 60), (1, true));
    }
    assert_eq!(relay.run_once().await.unwrap().sent, 0);
}

pub(crate) async fn rolled_back_is_nothing<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let mut transaction = shop.pool.begin().await.unwrap();
    shop.outbox.stage(&mut transaction, &message("a", 1)).await.unwrap();
    transaction.rollback().await.unwrap();
    let mut transaction = shop.pool.begin().await.unwrap();
    shop.outbox.stage(&mut transaction, &message("a", 2)).await.unwrap();
    drop(transaction);
    shop.stage([message("a", 3)]).await;
    let broker = Broker::default();
    shop.drain(&Relay::new(shop.outbox.clone(), broker.sender())).await;
    assert_eq!(broker.of("a"), ["3"]);
}

async fn handle<D: TestDatabase>(State(outbox): State<Outbox<D>>, mut tx: Tx<D>, body: String) -> StatusCode {
    outbox.stage(&mut tx, &message("a", &body)).await.unwrap();
    body.parse().unwrap()
}

pub(crate) async fn with_the_transaction_of_a_layer<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.store.migrate().await.unwrap();
    let layer = IdempotencyLayer::transactional(shop.store.clone());
    let app: Router = Router::new().route("/", post(handle::<D>).layer(layer)).with_state(shop.outbox.clone());
    for (key, status) in [("1", "500"), ("2", "201"), ("2", "201")] {
        let request = Request::post("/").header("idempotency-key", key).body(Body::from(status)).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        let (got, body) = (response.status(), axum::body::to_bytes(response.into_body(), 10_000).await.unwrap());
        assert_eq!(got.as_str(), status, "{body:?}");
    }
    let broker = Broker::default();
    shop.drain(&Relay::new(shop.outbox.clone(), broker.sender())).await;
    assert_eq!(broker.of("a"), ["201"]);
}

pub(crate) async fn an_id_is_taken_once<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let mut one = message("a", 1);
    one.id = "payment-7".into();
    shop.stage([one.clone()]).await;
    let mut transaction = shop.pool.begin().await.unwrap();
    let error = shop.outbox.stage(&mut transaction, &one).await.unwrap_err();
    assert!(error.is_without_effect());
    transaction.rollback().await.unwrap();
    assert_eq!(shop.unsent().await, 1);
    let ids: HashSet<_> = (0..1000).map(|n| message("a", n).id).collect();
    assert_eq!(ids.len(), 1000);
}

pub(crate) async fn what_no_column_holds_is_refused<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let (longest, too_long) = ("x".repeat(255), "x".repeat(256));
    let mut connection = shop.pool.acquire().await.unwrap();
    for message in [Message::new(&*too_long, ""), message(&too_long, ""), message("", "")] {
        assert!(shop.outbox.stage(&mut connection, &message).await.is_err());
    }
    shop.outbox.stage(&mut connection, &Message::new(&*longest, "").key(&*longest)).await.unwrap();
    drop(connection);
    assert_eq!(shop.unsent().await, 1);
}

pub(crate) async fn in_a_table_of_another_name<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    assert!(Outbox::new(shop.pool.clone()).table("no table").is_err());
    let other = Outbox::new(shop.pool.clone()).table("order").unwrap();
    let missing = other.stats().await.unwrap_err();
    assert!(!missing.is_temporary(), "{missing}");
    other.migrate().await.unwrap();
    other.migrate().await.unwrap();
    assert!(other.schema().contains("order_key"));
    let mut connection = shop.pool.acquire().await.unwrap();
    other.stage(&mut connection, &message("a", 1)).await.unwrap();
    drop(connection);
    assert_eq!((other.stats().await.unwrap().unsent, shop.unsent().await), (1, 0));
}

/// Who takes a number first may commit last.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) async fn what_is_committed_late_is_not_skipped<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let broker = Broker::default();
    let relay = Relay::new(shop.outbox.clone(), broker.sender());
    let mut late = shop.pool.begin().await.unwrap();
    shop.outbox.stage(&mut late, &message("late", 0)).await.unwrap();
    shop.stage((0..5).map(|n| message("early", n))).await;
    assert_eq!(relay.run_once().await.unwrap().sent, 5);
    late.commit().await.unwrap();
    assert_eq!(relay.run_once().await.unwrap().sent, 1);
    assert_eq!((broker.of("early"), broker.of("late")), (super::shop::numbers(0..5), super::shop::numbers(0..1)));
}
