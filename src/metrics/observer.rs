//! The observer: each event changes what it says of requests, stores and queues.

use std::{fmt, time::SystemTime};

use metrics::{Counter, Label, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use super::{
    catalog::{self as name, CATALOG, MetricKind},
    handles::{RouteMetrics, with},
    names::Names,
};
use crate::{Event, Observer, Protection, reconcile::SweepReport, store::Stats};

/// An observer whose metrics go to the recorder of the `metrics` crate that the application has installed.
///
/// Create it after the recorder: it describes its metrics when it is created, and without a recorder its values are lost.
/// Share it in an `Arc`, so that all layers of a store have one.
pub struct Metrics {
    store: Option<Label>,
    max_names: usize,
    routes: Names<RouteMetrics>,
    topics: Names<Vec<Label>>,
}

impl Metrics {
    /// Creates the observer, and describes the metrics of [`CATALOG`] to the recorder.
    #[must_use]
    pub fn new() -> Self {
        for metric in CATALOG {
            match metric.kind {
                MetricKind::Counter => describe_counter!(metric.name, metric.unit(), metric.help),
                MetricKind::Gauge => describe_gauge!(metric.name, metric.unit(), metric.help),
                MetricKind::Histogram => describe_histogram!(metric.name, metric.unit(), metric.help),
            }
        }
        Self { store: None, max_names: 256, routes: Names::new(), topics: Names::new() }
    }

    /// Adds a label `store` with this name to each value, for an application with several stores. Default: none.
    #[must_use]
    pub fn store(self, name: impl Into<String>) -> Self {
        Self { store: Some(Label::new("store", name.into())), ..self }
    }

    /// Sets how many routes, and how many topics, have a label of their own. All further ones are `other`. Default: 256.
    ///
    /// A layer whose routes are the paths of its requests has as many as clients ask for, and each costs the recorder
    /// memory for good.
    #[must_use]
    pub fn max_names(self, max_names: usize) -> Self {
        Self { max_names, ..self }
    }

    /// Sets the gauges of the records in a store, as [`StoreAdmin::stats`](crate::store::StoreAdmin::stats) has counted
    /// them. No event says them: call it from time to time, in one process.
    pub fn set_stats(&self, stats: &Stats) {
        let Stats { issued, running, abandoned, settled, released } = *stats;
        for (state, count) in [("issued", issued), ("running", running), ("settled", settled), ("released", released)] {
            gauge!(name::RECORDS, with(&self.own(), "state", state)).set(float(count));
        }
        gauge!(name::ABANDONED, self.own()).set(float(abandoned));
    }

    /// Returns the labels that every value has.
    fn own(&self) -> Vec<Label> {
        self.store.iter().cloned().collect()
    }

    /// Calls `use_it` with the metrics of a route.
    #[inline]
    fn route<R>(&self, route: &str, use_it: impl FnOnce(&RouteMetrics) -> R) -> R {
        self.routes.with(route, self.max_names, |route| RouteMetrics::new(route, self.store.clone()), use_it)
    }

    /// Returns the labels that every metric of a route has.
    fn labels(&self, route: &str) -> Vec<Label> {
        self.route(route, |route| route.labels.clone())
    }

    /// Returns a counter of a route.
    fn of_route(&self, name: &'static str, route: &str) -> Counter {
        counter!(name, self.labels(route))
    }

    /// Returns a counter of a route with one more label.
    fn by(&self, name: &'static str, route: &str, label: &'static str, value: &'static str) -> Counter {
        counter!(name, with(&self.labels(route), label, value))
    }

    fn request(&self, route: &str, outcome: &'static str) {
        self.by(name::REQUESTS, route, "outcome", outcome).increment(1);
    }

    fn topic(&self, topic: &str) -> Vec<Label> {
        let labels = |topic: &str| {
            let mut labels = vec![Label::new("topic", topic.to_owned())];
            labels.extend(self.store.clone());
            labels
        };
        self.topics.with(topic, self.max_names, labels, Vec::clone)
    }

    fn outbox(&self, topic: &str, outcome: &'static str) {
        counter!(name::OUTBOX, with(&self.topic(topic), "outcome", outcome)).increment(1);
    }

    fn table(&self, table: &str) -> Vec<Label> {
        let mut labels = self.own();
        labels.push(Label::new("table", table.to_owned()));
        labels
    }

    fn sweep(&self, sweep: &SweepReport) {
        let SweepReport { settled, released, discarded, left, skipped, failed } = *sweep;
        let results = [
            ("settled", settled),
            ("released", released),
            ("discarded", discarded),
            ("left", left),
            ("skipped", skipped),
            ("failed", failed),
        ];
        for (result, count) in results {
            counter!(name::RECONCILED, with(&self.own(), "result", result)).increment(count as u64);
        }
        gauge!(name::ABANDONED, self.own()).set(float((left + skipped + failed) as u64));
    }
}

impl Observer for Metrics {
    fn on_event(&self, event: &Event<'_>) {
        match *event {
            Event::Claimed { key, takeover, took, .. } => {
                self.route(key.route(), |route| route.claim.record(took));
                if takeover {
                    self.of_route(name::TAKEOVERS, key.route()).increment(1);
                }
            }
            Event::Settled { key, kept, not_kept, ran, took, .. } => {
                self.route(key.route(), |route| {
                    route.settled.increment(1);
                    route.run.record(ran);
                    route.record.record(took);
                    route.kept.increment(kept as u64);
                });
                if let Some(why) = not_kept {
                    self.by(name::NOT_KEPT, key.route(), "reason", why.name()).increment(1);
                }
            }
            Event::Released { key, ran, took, .. } => self.route(key.route(), |route| {
                route.released.increment(1);
                route.run.record(ran);
                route.record.record(took);
            }),
            Event::Replayed { key, age, .. } => self.route(key.route(), |route| {
                route.replayed.increment(1);
                if let Some(age) = age {
                    route.replay_age.record(age);
                }
            }),
            _ => self.on_rare(event),
        }
    }
}

impl Metrics {
    /// What most requests do not report.
    fn on_rare(&self, event: &Event<'_>) {
        match *event {
            Event::Refused { route, refusal, .. } => {
                self.request(route, "refused");
                self.by(name::REFUSALS, route, "reason", refusal.name()).increment(1);
            }
            Event::Responded { .. }
            | Event::ReplayRefused { .. }
            | Event::Unverified { .. }
            | Event::Keyless { .. }
            | Event::FailedOpen { .. }
            | Event::WouldRefuse { .. }
            | Event::WouldReplay { .. } => self.request(event.route().unwrap_or_default(), event.name()),
            Event::Switched { protection, .. } => {
                let position = match protection {
                    Protection::On => 2.0,
                    Protection::ObserveOnly => 1.0,
                    Protection::Off => 0.0,
                };
                gauge!(name::PROTECTION, self.own()).set(position);
            }
            Event::Withdrawn { key } => self.of_route(name::WITHDRAWN, key.route()).increment(1),
            Event::Waiting { key } => self.route(key.route(), |route| route.waiting.increment(1.0)),
            Event::Waited { key, waited, end } => {
                self.route(key.route(), |route| route.waiting.decrement(1.0));
                histogram!(name::WAIT_SECONDS, with(&self.labels(key.route()), "end", end.name())).record(waited);
            }
            Event::ClaimLost { key, .. } => self.of_route(name::CLAIMS_LOST, key.route()).increment(1),
            Event::Stalled { key, .. } => self.of_route(name::STALLS, key.route()).increment(1),
            Event::StoreFailed { key, verb, .. } => {
                self.by(name::STORE_ERRORS, key.route(), "verb", verb.name()).increment(1);
            }
            Event::NotRecorded { key, verb } => {
                self.by(name::NOT_RECORDED, key.route(), "verb", verb.name()).increment(1);
            }
            Event::Detached { key } => self.by(name::BACKGROUND, key.route(), "event", "begun").increment(1),
            Event::BackgroundEnded { key, .. } => self.by(name::BACKGROUND, key.route(), "event", "ended").increment(1),
            Event::Dropped { key, reason, .. } => {
                self.by(name::BACKGROUND, key.route(), "event", "dropped").increment(1);
                self.by(name::DROPPED, key.route(), "reason", reason.name()).increment(1);
            }
            Event::TokenIssued { purpose, took } => {
                self.by(name::TOKENS, purpose, "outcome", "issued").increment(1);
                histogram!(name::TOKEN_SECONDS, self.labels(purpose)).record(took);
            }
            Event::TokenNotIssued { purpose, .. } => self.by(name::TOKENS, purpose, "outcome", "failed").increment(1),
            Event::DeadLettered { route, reason, .. } => {
                self.by(name::DEAD_LETTERS, route, "reason", reason.name()).increment(1);
            }
            _ => self.on_background(event),
        }
    }

    /// What is not about one request.
    fn on_background(&self, event: &Event<'_>) {
        match *event {
            Event::OutboxStaged { topic } => self.outbox(topic, "staged"),
            Event::OutboxSent { topic, staged, .. } => {
                self.outbox(topic, "sent");
                let age = SystemTime::now().duration_since(staged).unwrap_or_default();
                histogram!(name::OUTBOX_SECONDS, self.topic(topic)).record(age);
            }
            Event::OutboxRetried { topic, .. } => self.outbox(topic, "retried"),
            Event::OutboxStuck { topic, discarded, .. } => {
                self.outbox(topic, if discarded { "discarded" } else { "stuck" });
            }
            Event::OutboxBacklog { unsent, oldest } => {
                gauge!(name::OUTBOX_UNSENT, self.own()).set(float(unsent));
                gauge!(name::OUTBOX_OLDEST, self.own()).set(oldest.unwrap_or_default());
            }
            Event::Reconciled { sweep, took } => {
                counter!(name::SWEEPS, with(&self.own(), "outcome", "completed")).increment(1);
                histogram!(name::SWEEP_SECONDS, self.own()).record(took);
                self.sweep(sweep);
            }
            Event::ReconcileFailed { .. } => {
                counter!(name::SWEEPS, with(&self.own(), "outcome", "failed")).increment(1);
            }
            Event::Purged { table, removed, .. } => counter!(name::PURGED, self.table(table)).increment(removed),
            Event::PurgeFailed { table, .. } => counter!(name::PURGE_FAILURES, self.table(table)).increment(1),
            // What most requests report is mapped before.
            _ => {}
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("store", &self.store)
            .field("max_names", &self.max_names)
            .finish_non_exhaustive()
    }
}

/// Returns a count as the number of a gauge. Beyond 2^53 it is rounded.
#[expect(clippy::cast_precision_loss, reason = "a gauge need not tell 2^53 from 2^53 + 1")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
