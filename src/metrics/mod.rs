//! Metrics through the facade of the `metrics` crate: [`Metrics`] is an [`Observer`](crate::Observer) that counts and
//! measures what it receives.
//!
//! ```
//! use std::sync::Arc;
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, metrics::Metrics};
//!
//! // After the application has installed its recorder, such as `metrics_exporter_prometheus::PrometheusBuilder`.
//! let metrics = Arc::new(Metrics::new().store("memory"));
//! let layer = IdempotencyLayer::new(MemoryStore::new()).observer(metrics.clone());
//! # drop(layer);
//! ```
//!
//! [`CATALOG`] lists all metrics with their labels. Labels are bounded: each is of a fixed set, or the name of a route or a
//! topic, of which [a number](Metrics::max_names) have a label of their own. No key, scope or caller is ever a label.
//!
//! The same observer serves any number of layers, stores, [`Tokens`](crate::Tokens), outboxes and reconcilers. What it costs
//! is two looks at the clock, two counters and three histograms a request.

// For maintainers: `catalog` has the names; `observer` maps events to metrics; `handles` are those of a route that each
// request needs; `names` bounds the names that become labels.

mod catalog;
mod handles;
mod names;
mod observer;
#[cfg(test)]
mod tests;

pub use self::{
    catalog::{CATALOG, MetricInfo, MetricKind},
    observer::Metrics,
};
