//! The metrics of one route that each request needs, looked up once.

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

use super::catalog::{CLAIM_SECONDS, KEPT_BYTES, RECORD_SECONDS, REPLAY_AGE_SECONDS, REQUESTS, RUN_SECONDS, WAITING};

pub(super) struct RouteMetrics {
    /// Those that every metric of the route has.
    pub(super) labels: Vec<Label>,
    pub(super) settled: Counter,
    pub(super) released: Counter,
    pub(super) replayed: Counter,
    pub(super) claim: Histogram,
    pub(super) run: Histogram,
    pub(super) record: Histogram,
    pub(super) kept: Counter,
    pub(super) replay_age: Histogram,
    pub(super) waiting: Gauge,
}

impl RouteMetrics {
    pub(super) fn new(route: &str, store: Option<Label>) -> Self {
        let mut labels = vec![Label::new("route", route.to_owned())];
        labels.extend(store);
        let of = |outcome| counter!(REQUESTS, with(&labels, "outcome", outcome));
        Self {
            settled: of("settled"),
            released: of("released"),
            replayed: of("replayed"),
            claim: histogram!(CLAIM_SECONDS, labels.clone()),
            run: histogram!(RUN_SECONDS, labels.clone()),
            record: histogram!(RECORD_SECONDS, labels.clone()),
            kept: counter!(KEPT_BYTES, labels.clone()),
            replay_age: histogram!(REPLAY_AGE_SECONDS, labels.clone()),
            waiting: gauge!(WAITING, labels.clone()),
            labels,
        }
    }
}

/// Returns the labels with one more.
pub(super) fn with(labels: &[Label], name: &'static str, value: &'static str) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(Label::from_static_parts(name, value));
    labels
}
