//! OpenTelemetry for [`tower_idempotency`]: what its layers report becomes instruments of a meter, and spans in which a replay
//! links to the trace of the first request.
//!
//! ```
//! use opentelemetry::global;
//! use tower_idempotency::{IdempotencyLayer, MemoryStore};
//! use tower_idempotency_otel::{OpenTelemetryObserver, trace_context};
//!
//! let observer = OpenTelemetryObserver::new(&global::meter("orders")).tracer(global::tracer("orders"));
//! let layer = IdempotencyLayer::new(MemoryStore::new()).observer(observer).trace_context(trace_context);
//! # drop(layer);
//! ```
//!
//! # Spans
//!
//! With a [tracer](OpenTelemetryObserver::tracer), each claim, run, record, wait and replay becomes a span below the span that
//! is current when the layer is called, such as that of the server's middleware. Without a current span there are none: what
//! goes on after its client has left has no parent to show it under. With [`trace_context`] on the layer, the answer is kept
//! with the context of the run, and the span `idempotency replay` has a link to it.
//!
//! # Instruments
//!
//! | instrument | kind, unit | attributes |
//! | --- | --- | --- |
//! | `idempotency.requests` | counter | `idempotency.route`, `idempotency.outcome` |
//! | `idempotency.refusals` | counter | route, `idempotency.reason` |
//! | `idempotency.takeovers`, `idempotency.claims.lost`, `idempotency.stalls` | counters | route |
//! | `idempotency.store.errors`, `idempotency.not_recorded` | counters | route, `idempotency.verb` |
//! | `idempotency.not_kept` | counter | route, reason |
//! | `idempotency.claim.duration`, `idempotency.run.duration`, `idempotency.record.duration` | histograms, s | route |
//! | `idempotency.wait.duration` | histogram, s | route, `idempotency.end` |
//! | `idempotency.replay.age` | histogram, s | route |
//! | `idempotency.kept.size` | histogram, By | route |
//! | `idempotency.waiting`, `idempotency.background.tasks` | up-down counters | route |
//! | `idempotency.dropped` | counter | route, reason |
//! | `idempotency.tokens` | counter | route, outcome |
//! | `idempotency.dead_letters` | counter | route, reason |
//! | `idempotency.outbox.messages` | counter | `idempotency.topic`, outcome |
//! | `idempotency.outbox.delay` | histogram, s | topic |
//! | `idempotency.outbox.unsent`, `idempotency.outbox.oldest` (s) | gauges | |
//! | `idempotency.reconcile.sweeps`, `idempotency.reconciled` | counters | outcome |
//! | `idempotency.purged` | counter | `idempotency.table` |
//!
//! No key, scope or caller is ever an attribute. A route is a template or a name; with `route_by_path` it is whatever clients ask
//! for, and the SDK counts those beyond its cardinality limit together (2,000 by default).

mod instruments;
mod observer;
mod spans;

pub use self::{observer::OpenTelemetryObserver, spans::trace_context};
