//! What Prometheus reads after a few requests.

use std::sync::Arc;

use axum::{Router, body::Body, http::Request};
use metrics_exporter_prometheus::PrometheusRecorder;
use tower::ServiceExt;
use tower_idempotency::{SqliteStore, metrics::Metrics};

use crate::{service, telemetry};

/// A recorder of this thread's own, and what it has.
pub(crate) struct Scraped {
    recorder: &'static PrometheusRecorder,
    _guard: metrics::LocalRecorderGuard<'static>,
}

impl Scraped {
    pub(crate) fn new() -> Self {
        // It lives as long as the test's process.
        let recorder: &'static _ = Box::leak(Box::new(telemetry::builder().unwrap().build_recorder()));
        Self { recorder, _guard: metrics::set_default_local_recorder(recorder) }
    }

    pub(crate) fn page(&self) -> String {
        self.recorder.handle().render()
    }

    /// Returns the sum of all values of a metric whose labels contain these.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let page = self.page();
        let lines =
            page.lines().filter(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} ")));
        let lines =
            lines.filter(|line| labels.iter().all(|(label, value)| line.contains(&format!("{label}=\"{value}\""))));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }
}

async fn order(app: &Router, key: &str) -> u16 {
    let request = Request::post("/orders").header("idempotency-key", key).body(Body::from("two apples")).unwrap();
    app.clone().oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn orders_their_replays_and_their_messages_are_counted() {
    let scraped = Scraped::new();
    let metrics = Arc::new(Metrics::new().store("sqlite"));
    let folder = std::env::temp_dir().join(format!("observability-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}?mode=rwc", folder.join("orders.db").display());
    let store = SqliteStore::builder().observer(metrics.clone()).connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    store.outbox().migrate().await.unwrap();
    service::create_tables(&store).await.unwrap();
    let app = service::app(store.clone(), metrics.clone());
    for (key, status) in [("a", 201), ("a", 201), ("b", 201), (",", 400)] {
        assert_eq!(order(&app, key).await, status);
    }
    let (stop, stopped) = tokio::sync::watch::channel(());
    let until = move || {
        let mut stopped = stopped.clone();
        async move {
            let _ = stopped.changed().await;
        }
    };
    let sent = async {
        while scraped.sum("idempotency_outbox_messages_total", &[("outcome", "sent")]) < 2.0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        drop(stop);
    };
    tokio::join!(service::background(store, metrics, until), sent);
    std::fs::remove_dir_all(&folder).unwrap();
    let route = ("route", "/orders");
    for (name, labels, value) in [
        ("idempotency_requests_total", &[route, ("outcome", "settled"), ("store", "sqlite")][..], 2.0),
        ("idempotency_requests_total", &[route, ("outcome", "replayed")], 1.0),
        ("idempotency_refusals_total", &[route, ("reason", "key-invalid")], 1.0),
        ("idempotency_claim_duration_seconds_count", &[route], 2.0),
        ("idempotency_outbox_messages_total", &[("topic", "order.placed"), ("outcome", "staged")], 2.0),
        ("idempotency_records", &[("state", "settled")], 2.0),
    ] {
        assert!((scraped.sum(name, labels) - value).abs() < f64::EPSILON, "{name} {labels:?}:\n{}", scraped.page());
    }
}
