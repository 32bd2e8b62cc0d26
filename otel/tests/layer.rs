//! A layer behind a server's span: its spans, its links, its instruments.

use std::sync::Arc;

use axum::{Router, body::Body, http::Request, routing::post};
use opentelemetry::{
    KeyValue,
    metrics::MeterProvider,
    trace::{FutureExt, SpanContext, TraceContextExt, Tracer, TracerProvider},
};
use opentelemetry_sdk::{
    metrics::{
        InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
        data::{ResourceMetrics, ScopeMetrics},
    },
    trace::{InMemorySpanExporter, SdkTracerProvider, SpanData},
};
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, MemoryStore};
use tower_idempotency_otel::{OpenTelemetryObserver, trace_context};

struct Telemetry {
    spans: InMemorySpanExporter,
    tracers: SdkTracerProvider,
    metrics: InMemoryMetricExporter,
    meters: SdkMeterProvider,
}

impl Telemetry {
    fn new() -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        let tracers = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let meters = SdkMeterProvider::builder().with_reader(PeriodicReader::builder(metrics.clone()).build()).build();
        Self { spans, tracers, metrics, meters }
    }

    fn app(&self) -> Router {
        let meter = self.meters.meter("orders");
        let observer = OpenTelemetryObserver::new(&meter).tracer(self.tracers.tracer("orders"));
        let layer = IdempotencyLayer::new(MemoryStore::new()).observer(Arc::new(observer)).trace_context(trace_context);
        Router::new().route("/orders", post(async || "ordered").layer(layer))
    }

    /// Sends a request inside a span of the server, and returns the context of that.
    async fn ask(&self, app: &Router, key: &str) -> SpanContext {
        let request = Request::post("/orders").header("idempotency-key", key).body(Body::from("one")).unwrap();
        let span = self.tracers.tracer("server").start("POST /orders");
        let context = opentelemetry::Context::current_with_span(span);
        let of_server = context.span().span_context().clone();
        let answer = app.clone().oneshot(request).with_context(context).await.unwrap();
        assert_eq!(answer.status(), 200);
        of_server
    }

    fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().unwrap()
    }

    /// Returns the names of the instruments that have a value.
    fn instruments(&self) -> Vec<String> {
        self.meters.force_flush().unwrap();
        let exported = self.metrics.get_finished_metrics().unwrap();
        let scopes = exported.iter().flat_map(ResourceMetrics::scope_metrics);
        let mut names: Vec<_> = scopes.flat_map(ScopeMetrics::metrics).map(|metric| metric.name().to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }
}

#[tokio::test]
async fn a_replay_links_to_the_trace_of_the_first_request() {
    let telemetry = Telemetry::new();
    let app = telemetry.app();
    let first = telemetry.ask(&app, "k-1").await;
    let second = telemetry.ask(&app, "k-1").await;
    assert_ne!(first.trace_id(), second.trace_id());
    let spans = telemetry.spans();
    let replay = spans.iter().find(|span| span.name == "idempotency replay").unwrap();
    assert_eq!((replay.span_context.trace_id(), replay.parent_span_id), (second.trace_id(), second.span_id()));
    let links: Vec<_> =
        replay.links.iter().map(|link| (link.span_context.trace_id(), link.span_context.span_id())).collect();
    assert_eq!(links, [(first.trace_id(), first.span_id())]);
    assert!(replay.attributes.contains(&KeyValue::new("idempotency.route", "/orders")));
}

#[tokio::test]
async fn the_steps_of_a_first_request_are_spans_below_that_of_the_server() {
    let telemetry = Telemetry::new();
    let first = telemetry.ask(&telemetry.app(), "k-1").await;
    let spans = telemetry.spans();
    let below: Vec<_> =
        spans.iter().filter(|span| span.parent_span_id == first.span_id()).map(|span| &*span.name).collect();
    assert_eq!(below, ["idempotency claim", "idempotency record"]);
    assert!(spans.iter().all(|span| !format!("{span:?}").contains("k-1")), "a key is in a span");
}

#[tokio::test]
async fn a_request_without_a_span_has_no_spans_and_keeps_the_context_of_its_header() {
    let telemetry = Telemetry::new();
    let app = telemetry.app();
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = Request::post("/orders").header("idempotency-key", "k-1").header("traceparent", header);
    app.clone().oneshot(request.body(Body::from("one")).unwrap()).await.unwrap();
    assert!(telemetry.spans().is_empty());
    telemetry.ask(&app, "k-1").await;
    let spans = telemetry.spans();
    let replay = spans.iter().find(|span| span.name == "idempotency replay").unwrap();
    let linked: Vec<_> = replay.links.iter().map(|link| link.span_context.trace_id().to_string()).collect();
    assert_eq!(linked, ["4bf92f3577b34da6a3ce929d0e0e4736"]);
}

#[tokio::test]
async fn what_happens_is_counted_and_measured() {
    let telemetry = Telemetry::new();
    let app = telemetry.app();
    telemetry.ask(&app, "k-1").await;
    telemetry.ask(&app, "k-1").await;
    let request = Request::post("/orders").body(Body::empty()).unwrap();
    assert_eq!(app.oneshot(request).await.unwrap().status(), 400);
    let expected = [
        "idempotency.claim.duration",
        "idempotency.kept.size",
        "idempotency.record.duration",
        "idempotency.refusals",
        "idempotency.replay.age",
        "idempotency.requests",
        "idempotency.run.duration",
    ];
    assert_eq!(telemetry.instruments(), expected);
}
