//! The names, kinds, units, labels and descriptions of all metrics: the only place that has them.

use metrics::Unit;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It is set.
    Gauge,
    /// It is a distribution.
    Histogram,
}

/// A metric of this crate.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MetricInfo {
    /// The name, with its unit.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The labels that every value has, besides `store`, which [`Metrics::store`](super::Metrics::store) sets.
    pub labels: &'static [&'static str],
    /// The values that the last label has, if they are of a fixed set; empty otherwise.
    pub values: &'static [&'static str],
    /// What it measures.
    pub help: &'static str,
}

/// Defines a constant for each metric, and the list of all.
macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] [$($value:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: &str = $name;)*

        /// All metrics of this crate, for dashboards, alert rules and their tests.
        pub const CATALOG: &[MetricInfo] = &[$(MetricInfo {
            name: $name,
            kind: MetricKind::$kind,
            labels: &[$($label),*],
            values: &[$($value),*],
            help: $help,
        }),*];
    };
}

metrics! {
    REQUESTS: Counter "idempotency_requests_total" ["route", "outcome"]
        ["settled", "released", "replayed", "responded", "replay-refused", "refused", "unverified", "keyless", "failed-open",
         "would-refuse", "would-replay"]
        "Requests, messages and calls of functions, by what came of them.";
    REFUSALS: Counter "idempotency_refusals_total" ["route", "reason"] []
        "Requests that were refused, by the name of the refusal.";
    TAKEOVERS: Counter "idempotency_takeovers_total" ["route"] []
        "Claims granted after the lease of an attempt before had lapsed.";
    CLAIMS_LOST: Counter "idempotency_claims_lost_total" ["route"] []
        "Claims that were lost to another request while the work ran.";
    STALLS: Counter "idempotency_stalls_total" ["route"] []
        "Handlers that blocked their thread for longer than their lease.";
    STORE_ERRORS: Counter "idempotency_store_errors_total" ["route", "verb"]
        ["issue", "claim", "renew", "settle", "release", "changed"]
        "Calls to the store that failed or took too long, each try counted.";
    NOT_RECORDED: Counter "idempotency_not_recorded_total" ["route", "verb"] ["settle", "release"]
        "Requests whose end could not be recorded, so that their claims lapse.";
    NOT_KEPT: Counter "idempotency_not_kept_total" ["route", "reason"]
        ["stream", "partial", "too-large", "too-slow", "broken", "refused-by-store", "hook-failed", "not-serializable"]
        "Operations that were settled without their answers, by the reason.";
    CLAIM_SECONDS: Histogram "idempotency_claim_duration_seconds" ["route"] []
        "How long the store took to grant a claim.";
    RUN_SECONDS: Histogram "idempotency_run_duration_seconds" ["route"] []
        "How long the work ran, from the grant of its claim to its end.";
    RECORD_SECONDS: Histogram "idempotency_record_duration_seconds" ["route"] []
        "How long it took to record the end of the work, all tries together.";
    WAIT_SECONDS: Histogram "idempotency_wait_duration_seconds" ["route", "end"]
        ["ended", "timed-out", "store-failed", "cancelled"]
        "How long duplicates waited for the end of the first request.";
    WAITING: Gauge "idempotency_waiting_requests" ["route"] []
        "Duplicates that wait now for the end of the first request, in this process.";
    REPLAY_AGE_SECONDS: Histogram "idempotency_replay_age_seconds" ["route"] []
        "How long ago an answer was kept that is replayed.";
    KEPT_BYTES: Counter "idempotency_kept_bytes_total" ["route"] []
        "The size of all answers that were kept, together.";
    BACKGROUND: Counter "idempotency_background_tasks_total" ["route", "event"] ["begun", "ended", "dropped"]
        "Work whose client has left.";
    DROPPED: Counter "idempotency_dropped_total" ["route", "reason"]
        ["cancel-on-disconnect", "no-runtime", "timed-out", "shutdown"]
        "Work that was dropped after its client had left, by the reason.";
    WITHDRAWN: Counter "idempotency_withdrawn_claims_total" ["route"] []
        "Claims that the store had not answered, and that were released in the background.";
    TOKENS: Counter "idempotency_tokens_total" ["route", "outcome"] ["issued", "failed"]
        "Tokens that were issued, or could not be.";
    TOKEN_SECONDS: Histogram "idempotency_token_duration_seconds" ["route"] []
        "How long it took to issue a token.";
    DEAD_LETTERS: Counter "idempotency_dead_letters_total" ["route", "reason"]
        ["failed-permanently", "exhausted", "rejected", "mismatch", "outcome-unknown"]
        "Messages that a consumer asks to be put aside, by the reason.";
    PROTECTION: Gauge "idempotency_protection" [] []
        "What the switch of a layer was turned to last: 2 is on, 1 is observe only, 0 is off.";
    OUTBOX: Counter "idempotency_outbox_messages_total" ["topic", "outcome"]
        ["staged", "sent", "retried", "stuck", "discarded"]
        "Messages of outboxes, by what came of them.";
    OUTBOX_SECONDS: Histogram "idempotency_outbox_delay_seconds" ["topic"] []
        "How long messages were staged before they were sent, by the clocks of the database and of this process.";
    OUTBOX_UNSENT: Gauge "idempotency_outbox_unsent_messages" [] []
        "Messages that wait in the outbox, counted every ten seconds by each relay.";
    OUTBOX_OLDEST: Gauge "idempotency_outbox_oldest_seconds" [] []
        "How long the oldest message has waited in the outbox; 0 if none waits.";
    SWEEPS: Counter "idempotency_reconcile_sweeps_total" ["outcome"] ["completed", "failed"]
        "Looks of a reconciler through its store.";
    SWEEP_SECONDS: Histogram "idempotency_reconcile_duration_seconds" [] []
        "How long a reconciler took to look through its store.";
    RECONCILED: Counter "idempotency_reconciled_total" ["result"]
        ["settled", "released", "discarded", "left", "skipped", "failed"]
        "Abandoned records and unsent messages, by what a reconciler did about them.";
    ABANDONED: Gauge "idempotency_abandoned_records" [] []
        "Abandoned records, as the last sweep of a reconciler or the last count has left them.";
    RECORDS: Gauge "idempotency_records" ["state"] ["issued", "running", "released", "settled"]
        "Live records in the store, by state, as they were counted last.";
    PURGED: Counter "idempotency_purged_records_total" ["table"] []
        "Expired records and old messages that were removed.";
    PURGE_FAILURES: Counter "idempotency_purge_failures_total" ["table"] []
        "Rounds in which what had expired could not be removed.";
}

impl MetricInfo {
    /// Returns the unit, by the name.
    pub(super) fn unit(&self) -> Unit {
        if self.name.ends_with("_seconds") {
            Unit::Seconds
        } else if self.name.ends_with("_bytes_total") {
            Unit::Bytes
        } else {
            Unit::Count
        }
    }
}
