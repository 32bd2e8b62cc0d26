//! Orders, the messages that they cause, and what runs beside them.

use std::{future::Future, sync::Arc, time::Duration};

use axum::{Router, http::StatusCode, routing::post};
use tokio::time::{interval, timeout};
use tower_idempotency::{
    IdempotencyLayer, Reconciler, SqliteStore, StoreError, WhileRunning,
    metrics::Metrics,
    reconcile::{Resolution, UnsentResolution},
    scope,
    sql::{
        Tx,
        outbox::{Message, Relay, StagedMessage},
    },
    store::StoreAdmin,
};

pub(crate) async fn create_tables(store: &SqliteStore) -> Result<(), Box<dyn std::error::Error>> {
    sqlx::query("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        .execute(store.pool())
        .await?;
    Ok(())
}

/// The order, its record and its message are committed together.
pub(crate) fn app(store: SqliteStore, metrics: Arc<Metrics>) -> Router {
    let outbox = store.outbox();
    let place = async move |mut tx: Tx<sqlx::Sqlite>, text: String| {
        let inserted = sqlx::query("INSERT INTO orders (text) VALUES (?)").bind(&text).execute(&mut *tx).await;
        let id = inserted.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?.last_insert_rowid();
        let message = Message::new("order.placed", id.to_string());
        outbox.stage(&mut tx, &message).await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok::<_, StatusCode>((StatusCode::CREATED, format!("order {id}\n")))
    };
    let layer = IdempotencyLayer::transactional(store)
        .scope(scope::header("x-user").optional())
        .while_running(WhileRunning::Wait(Duration::from_secs(5)))
        .observer(metrics);
    Router::new().route("/orders", post(place).layer(layer))
}

/// The relay, the reconciler and the count of records, until `stopped` resolves.
pub(crate) fn background<S: Future<Output = ()>>(
    store: SqliteStore,
    metrics: Arc<Metrics>,
    stopped: impl Fn() -> S,
) -> impl Future<Output = ()> {
    let relay = Relay::new(store.outbox(), send);
    let reconciler = Reconciler::new(store.clone(), async |_| Resolution::Leave)
        .unsent(store.outbox(), Duration::from_secs(60), async |_| UnsentResolution::Leave)
        .observer(metrics.clone());
    let [relaying, reconciling, counting] = [stopped(), stopped(), stopped()];
    async move {
        tokio::join!(
            relay.run(Duration::from_millis(500), relaying),
            reconciler.run(Duration::from_secs(30), reconciling),
            count(&store, &metrics, counting),
        );
    }
}

/// Stands for a broker or a webhook.
async fn send(outgoing: StagedMessage) -> Result<(), StoreError> {
    println!("sent {} of {}", outgoing.message.id, outgoing.message.topic);
    Ok(())
}

/// Counts the records for the gauges, which no event could say.
async fn count(store: &SqliteStore, metrics: &Metrics, stopped: impl Future<Output = ()>) {
    let counting = async {
        let mut ticks = interval(Duration::from_secs(15));
        loop {
            ticks.tick().await;
            if let Ok(Ok(stats)) = timeout(Duration::from_secs(5), store.stats()).await {
                metrics.set_stats(&stats);
            }
        }
    };
    tokio::select! {
        () = stopped => {}
        () = counting => {}
    }
}
