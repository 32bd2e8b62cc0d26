//! Spans of what has just happened, below the current one.

use std::time::{Duration, SystemTime};

use http::request::Parts;
use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId,
    trace::{Link, Span, SpanContext, TraceContextExt, TraceState, Tracer},
};
use tower_idempotency::store::TraceContext;

/// Returns the context of the current span; without one, that of the header `traceparent`.
///
/// It is for [`IdempotencyLayer::trace_context`](tower_idempotency::IdempotencyLayer::trace_context).
#[must_use]
pub fn trace_context(head: &Parts) -> Option<TraceContext> {
    let context = Context::current();
    let span = context.span();
    let current = span.span_context();
    if !current.is_valid() {
        return TraceContext::from_headers(&head.headers);
    }
    let (trace_id, span_id) = (current.trace_id().to_bytes(), current.span_id().to_bytes());
    Some(TraceContext::new(trace_id, span_id, current.trace_flags().to_u8()))
}

/// Makes spans that have already ended.
pub(crate) trait Spans: Send + Sync {
    /// Adds a span below the current one that has taken `took` until now.
    fn add(&self, name: &'static str, took: Duration, attributes: Vec<KeyValue>, link: Option<TraceContext>);
}

impl<T: Tracer + Send + Sync> Spans for T {
    fn add(&self, name: &'static str, took: Duration, attributes: Vec<KeyValue>, link: Option<TraceContext>) {
        let context = Context::current();
        if !context.span().span_context().is_valid() {
            return;
        }
        let now = SystemTime::now();
        let links = link.map(|first| Link::with_context(span_context(first))).into_iter().collect();
        let builder = self
            .span_builder(name)
            .with_start_time(now.checked_sub(took).unwrap_or(now))
            .with_attributes(attributes)
            .with_links(links);
        self.build_with_context(builder, &context).end_with_timestamp(now);
    }
}

fn span_context(kept: TraceContext) -> SpanContext {
    SpanContext::new(
        TraceId::from_bytes(kept.trace_id()),
        SpanId::from_bytes(kept.span_id()),
        TraceFlags::new(kept.flags()),
        true,
        TraceState::NONE,
    )
}
