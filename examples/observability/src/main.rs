//! A service as operators see it: orders behind a layer, their messages in an outbox, a reconciler, and a page of metrics for
//! Prometheus.
//!
//! ```sh
//! cargo run -p observability -- orders.db
//! curl -H 'Idempotency-Key: 7f0c' -d 'two apples' localhost:3000/orders
//! curl localhost:9464/metrics
//! ```

mod service;
mod telemetry;
#[cfg(test)]
mod tests;

use std::{env, error::Error, sync::Arc};

use tokio::{net::TcpListener, signal, sync::watch};
use tower_idempotency::{SqliteStore, metrics::Metrics};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).unwrap_or_else(|| "orders.db".into());
    let address = |name, default: &str| env::var(name).unwrap_or_else(|_| default.into());
    // The recorder comes first: what is counted before it is lost.
    let page = telemetry::install()?;
    let metrics = Arc::new(Metrics::new().store("sqlite"));
    let options = format!("sqlite:{path}?mode=rwc");
    let store = SqliteStore::builder().observer(metrics.clone()).connect(&options).await?;
    store.migrate().await?;
    store.outbox().migrate().await?;
    service::create_tables(&store).await?;

    let orders = TcpListener::bind(address("ORDERS", "127.0.0.1:3000")).await?;
    let scraped = TcpListener::bind(address("METRICS", "127.0.0.1:9464")).await?;
    println!("orders on http://{}/orders, metrics on http://{}/metrics", orders.local_addr()?, scraped.local_addr()?);

    let (stop, stopped) = watch::channel(());
    let stopped = move || {
        let mut stopped = stopped.clone();
        async move {
            let _ = stopped.changed().await;
        }
    };
    let app = service::app(store.clone(), metrics.clone());
    let background = service::background(store, metrics, stopped.clone());
    let serving = axum::serve(orders, app).with_graceful_shutdown(stopped());
    let scraping = axum::serve(scraped, page.router()).with_graceful_shutdown(stopped());
    let ending = async {
        signal::ctrl_c().await?;
        drop(stop);
        Ok(())
    };
    let ((), served) =
        tokio::join!(background, async { tokio::try_join!(serving.into_future(), scraping.into_future(), ending) });
    served?;
    Ok(())
}
