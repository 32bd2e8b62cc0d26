//! The instruments, each created once.

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter, UpDownCounter};

pub(crate) struct Instruments {
    pub(crate) requests: Counter<u64>,
    pub(crate) refusals: Counter<u64>,
    pub(crate) takeovers: Counter<u64>,
    pub(crate) claims_lost: Counter<u64>,
    pub(crate) stalls: Counter<u64>,
    pub(crate) store_errors: Counter<u64>,
    pub(crate) not_recorded: Counter<u64>,
    pub(crate) not_kept: Counter<u64>,
    pub(crate) claim: Histogram<f64>,
    pub(crate) run: Histogram<f64>,
    pub(crate) record: Histogram<f64>,
    pub(crate) wait: Histogram<f64>,
    pub(crate) replay_age: Histogram<f64>,
    pub(crate) kept: Histogram<u64>,
    pub(crate) waiting: UpDownCounter<i64>,
    pub(crate) background: UpDownCounter<i64>,
    pub(crate) dropped: Counter<u64>,
    pub(crate) tokens: Counter<u64>,
    pub(crate) dead_letters: Counter<u64>,
    pub(crate) outbox: Counter<u64>,
    pub(crate) outbox_delay: Histogram<f64>,
    pub(crate) outbox_unsent: Gauge<u64>,
    pub(crate) outbox_oldest: Gauge<f64>,
    pub(crate) sweeps: Counter<u64>,
    pub(crate) reconciled: Counter<u64>,
    pub(crate) purged: Counter<u64>,
}

impl Instruments {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, help: &'static str| meter.u64_counter(name).with_description(help).build();
        let seconds = |name: &'static str, help: &'static str| {
            meter.f64_histogram(name).with_unit("s").with_description(help).build()
        };
        let level =
            |name: &'static str, help: &'static str| meter.i64_up_down_counter(name).with_description(help).build();
        Self {
            requests: counter("idempotency.requests", "Requests, messages and calls, by what came of them."),
            refusals: counter("idempotency.refusals", "Requests that were refused, by the name of the refusal."),
            takeovers: counter("idempotency.takeovers", "Claims granted after an earlier lease had lapsed."),
            claims_lost: counter("idempotency.claims.lost", "Claims lost to another request while the work ran."),
            stalls: counter("idempotency.stalls", "Handlers that blocked for longer than their lease."),
            store_errors: counter("idempotency.store.errors", "Calls to the store that failed, each try counted."),
            not_recorded: counter("idempotency.not_recorded", "Requests whose end could not be recorded."),
            not_kept: counter("idempotency.not_kept", "Operations settled without their answers, by the reason."),
            claim: seconds("idempotency.claim.duration", "How long the store took to grant a claim."),
            run: seconds("idempotency.run.duration", "How long the work ran."),
            record: seconds("idempotency.record.duration", "How long it took to record the end of the work."),
            wait: seconds("idempotency.wait.duration", "How long duplicates waited for the first request."),
            replay_age: seconds("idempotency.replay.age", "How long ago an answer was kept that is replayed."),
            kept: meter
                .u64_histogram("idempotency.kept.size")
                .with_unit("By")
                .with_description("The size of what is kept.")
                .build(),
            waiting: level("idempotency.waiting", "Duplicates that wait now for the first request."),
            background: level("idempotency.background.tasks", "Work that goes on now after its client has left."),
            dropped: counter("idempotency.dropped", "Work that was dropped after its client had left."),
            tokens: counter("idempotency.tokens", "Tokens that were issued, or could not be."),
            dead_letters: counter("idempotency.dead_letters", "Messages that are to be put aside, by the reason."),
            outbox: counter("idempotency.outbox.messages", "Messages of outboxes, by what came of them."),
            outbox_delay: seconds("idempotency.outbox.delay", "How long messages were staged before they were sent."),
            outbox_unsent: meter
                .u64_gauge("idempotency.outbox.unsent")
                .with_description("Messages that wait in the outbox.")
                .build(),
            outbox_oldest: meter
                .f64_gauge("idempotency.outbox.oldest")
                .with_unit("s")
                .with_description("How long the oldest message has waited.")
                .build(),
            sweeps: counter("idempotency.reconcile.sweeps", "Looks of a reconciler through its store."),
            reconciled: counter("idempotency.reconciled", "What reconcilers did about records and messages."),
            purged: counter("idempotency.purged", "Expired records and old messages that were removed."),
        }
    }
}
