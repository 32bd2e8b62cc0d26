//! Every metric of the catalog is emitted, with its labels and no others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use http::StatusCode;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder};

use super::{CATALOG, Metrics, names::OTHER, observer::float};
use crate::{
    Event, Observer, Protection, Refusal, StoreError,
    event::{DeadLetterReason, DropReason, NotKept, WaitEnd},
    reconcile::SweepReport,
    store::{RecordKey, Stats, StoreErrorKind, StoreVerb},
};

const SECOND: Duration = Duration::from_secs(1);

/// A value, by its name and its labels in the order of the alphabet.
type Values = Arc<Mutex<BTreeMap<(String, Vec<(String, String)>), f64>>>;

/// Keeps the last value of each metric; that of a histogram is the sum.
#[derive(Clone, Default)]
struct Kept {
    values: Values,
    described: Arc<Mutex<BTreeSet<String>>>,
}

/// One metric.
struct Cell(Values, (String, Vec<(String, String)>));

impl Cell {
    fn change(&self, change: impl FnOnce(&mut f64)) {
        change(self.0.lock().unwrap().entry(self.1.clone()).or_default());
    }
}

impl metrics::CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.change(|old| *old += float(value));
    }

    fn absolute(&self, value: u64) {
        self.change(|old| *old = float(value));
    }
}

impl metrics::GaugeFn for Cell {
    fn increment(&self, value: f64) {
        self.change(|old| *old += value);
    }

    fn decrement(&self, value: f64) {
        self.change(|old| *old -= value);
    }

    fn set(&self, value: f64) {
        self.change(|old| *old = value);
    }
}

impl metrics::HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.change(|old| *old += value);
    }
}

impl Kept {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let mut labels: Vec<_> = key.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect();
        labels.sort();
        Arc::new(Cell(self.values.clone(), (key.name().to_owned(), labels)))
    }

    fn describe(&self, key: &KeyName, help: &SharedString) {
        assert!(help.ends_with('.'), "{}: {help}", key.as_str());
        assert!(self.described.lock().unwrap().insert(key.as_str().to_owned()), "{} twice", key.as_str());
    }

    /// Returns the value with these labels.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.values.lock().unwrap().get(&(name.to_owned(), labels)).copied().unwrap_or(f64::NAN)
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&key, &help);
    }

    fn describe_gauge(&self, key: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&key, &help);
    }

    fn describe_histogram(&self, key: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&key, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

fn key() -> RecordKey {
    RecordKey::new("/orders", Some("ann"), "secret-7f0c").unwrap()
}

fn error() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "away")
}

/// Reports one event of each kind, and of each variety that has a label of its own.
fn report_all(metrics: &Metrics) {
    let (key, error) = (&key(), &error());
    let (route, status, after) = (key.route(), Some(StatusCode::CREATED), SECOND);
    let (ran, took) = (SECOND, SECOND);
    let refusal = &Refusal::DuplicateRequest;
    let sweep = &SweepReport { settled: 1, released: 2, discarded: 3, left: 4, skipped: 5, failed: 6 };
    let not_kept = Some(NotKept::TooLarge);
    let reason = DropReason::TimedOut;
    for event in [
        Event::Refused { route, key: None, refusal },
        Event::Replayed { key, status, age: Some(SECOND), trace: None },
        Event::Responded { key },
        Event::ReplayRefused { key, status: StatusCode::FORBIDDEN },
        Event::Unverified { route, status: StatusCode::UNAUTHORIZED },
        Event::Switched { protection: Protection::ObserveOnly, before: Protection::On },
        Event::WouldRefuse { route, key: Some(key), refusal },
        Event::WouldReplay { key },
        Event::Claimed { key, attempt: 2, takeover: true, took },
        Event::Settled { key, status, kept: 9, not_kept: None, ran, took },
        Event::Settled { key, status, kept: 0, not_kept, ran, took },
        Event::Released { key, status: None, ran, took },
        Event::Withdrawn { key },
        Event::Waiting { key },
        Event::Waiting { key },
        Event::Waited { key, waited: SECOND, end: WaitEnd::Ended },
        Event::Keyless { route },
        Event::ClaimLost { key, attempt: 1 },
        Event::Stalled { key, after },
        Event::StoreFailed { key, verb: StoreVerb::Renew, error, retried: true },
        Event::NotRecorded { key, verb: StoreVerb::Settle },
        Event::FailedOpen { key, error },
        Event::Detached { key },
        Event::BackgroundEnded { key, after },
        Event::Dropped { key, reason, after },
        Event::TokenIssued { purpose: "checkout", took },
        Event::TokenNotIssued { purpose: "checkout", error },
        Event::DeadLettered { route: "payouts", key: None, reason: DeadLetterReason::Exhausted { attempts: 3 } },
        Event::OutboxStaged { topic: "mail" },
        Event::OutboxSent { topic: "mail", attempt: 1, staged: SystemTime::now() },
        Event::OutboxRetried { topic: "mail", attempt: 1, error: "away", pause: SECOND },
        Event::OutboxStuck { topic: "mail", attempts: 9, discarded: false },
        Event::OutboxStuck { topic: "mail", attempts: 9, discarded: true },
        Event::OutboxBacklog { unsent: 7, oldest: Some(SECOND) },
        Event::Reconciled { sweep, took },
        Event::ReconcileFailed { error },
        Event::Purged { table: "idempotency_records", removed: 5, took },
        Event::PurgeFailed { table: "idempotency_records", error },
    ] {
        metrics.on_event(&event);
    }
    metrics.set_stats(&Stats { issued: 1, running: 2, abandoned: 3, settled: 4, released: 5 });
}

#[test]
fn every_metric_of_the_catalog_is_emitted_with_its_labels_and_described_once() {
    let kept = Kept::default();
    with_local_recorder(&kept, || report_all(&Metrics::new().store("redis")));
    let catalog: BTreeSet<_> = CATALOG.iter().map(|metric| metric.name.to_owned()).collect();
    assert_eq!(*kept.described.lock().unwrap(), catalog);
    let mut emitted = BTreeSet::new();
    for (name, labels) in kept.values.lock().unwrap().keys() {
        let metric = CATALOG.iter().find(|metric| metric.name == name).unwrap();
        let mut names: Vec<_> = metric.labels.iter().chain(&["store"]).copied().collect();
        names.sort_unstable();
        assert_eq!(labels.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), names, "{name}");
        let last = metric.labels.last().filter(|_| !metric.values.is_empty());
        for (label, value) in labels.iter().filter(|(label, _)| Some(&&**label) == last) {
            assert!(metric.values.contains(&&**value), "{name}: {label} is {value}");
        }
        assert!(labels.iter().all(|(_, value)| !value.contains("7f0c") && !value.contains("ann")), "{labels:?}");
        emitted.insert(name.clone());
    }
    assert_eq!(emitted, catalog);
}

#[test]
fn the_values_are_those_of_the_events() {
    let kept = Kept::default();
    with_local_recorder(&kept, || report_all(&Metrics::new()));
    let route = ("route", "/orders");
    for (name, labels, value) in [
        ("idempotency_requests_total", &[("outcome", "settled"), route][..], 2.0),
        ("idempotency_refusals_total", &[("reason", "duplicate-request"), route], 1.0),
        ("idempotency_waiting_requests", &[route], 1.0),
        ("idempotency_run_duration_seconds", &[route], 3.0),
        ("idempotency_kept_bytes_total", &[route], 9.0),
        ("idempotency_not_kept_total", &[("reason", "too-large"), route], 1.0),
        ("idempotency_protection", &[], 1.0),
        ("idempotency_reconciled_total", &[("result", "left")], 4.0),
        ("idempotency_abandoned_records", &[], 3.0),
        ("idempotency_records", &[("state", "settled")], 4.0),
        ("idempotency_outbox_unsent_messages", &[], 7.0),
        ("idempotency_outbox_messages_total", &[("outcome", "stuck"), ("topic", "mail")], 1.0),
        ("idempotency_purged_records_total", &[("table", "idempotency_records")], 5.0),
    ] {
        assert!((kept.value(name, labels) - value).abs() < f64::EPSILON, "{name}: {}", kept.value(name, labels));
    }
}

#[test]
fn routes_beyond_the_bound_share_a_label() {
    let kept = Kept::default();
    with_local_recorder(&kept, || {
        let metrics = Metrics::new().max_names(1);
        for route in ["/orders", "/a", "/b"] {
            metrics.on_event(&Event::Keyless { route });
        }
    });
    let count = |route| kept.value("idempotency_requests_total", &[("outcome", "keyless"), ("route", route)]);
    assert_eq!(["/orders", OTHER, "/a"].map(|route| count(route).to_string()), ["1", "2", "NaN"]);
}
