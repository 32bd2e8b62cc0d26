//! The observer: each event changes what it says of requests, stores and queues.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use opentelemetry::{KeyValue, metrics::Meter, trace::Tracer};
use tower_idempotency::{Event, Observer};

use crate::{instruments::Instruments, spans::Spans};

/// An observer whose values go to the instruments of a meter and, with a tracer, to spans.
///
/// Share it in an `Arc` between the layers, stores, outboxes and reconcilers of an application.
pub struct OpenTelemetryObserver {
    instruments: Instruments,
    spans: Option<Box<dyn Spans>>,
}

impl OpenTelemetryObserver {
    /// Creates the observer with the instruments of a meter.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        Self { instruments: Instruments::new(meter), spans: None }
    }

    /// Adds spans of claims, runs, records, waits and replays. Default: none.
    #[must_use]
    pub fn tracer(self, tracer: impl Tracer + Send + Sync + 'static) -> Self {
        Self { spans: Some(Box::new(tracer)), ..self }
    }

    fn span(&self, event: &Event<'_>, name: &'static str, took: Duration) {
        let Some(spans) = &self.spans else { return };
        let mut attributes = vec![route(event)];
        let mut link = None;
        match *event {
            Event::Replayed { trace, .. } => link = trace,
            Event::Claimed { attempt, takeover, .. } => {
                attributes.push(KeyValue::new("idempotency.attempt", i64::from(attempt)));
                attributes.push(KeyValue::new("idempotency.takeover", takeover));
            }
            Event::Waited { end, .. } => attributes.push(KeyValue::new("idempotency.end", end.name())),
            _ => {}
        }
        spans.add(name, took, attributes, link);
    }

    fn request(&self, event: &Event<'_>, outcome: &'static str) {
        self.instruments.requests.add(1, &[route(event), KeyValue::new("idempotency.outcome", outcome)]);
    }
}

fn route(event: &Event<'_>) -> KeyValue {
    KeyValue::new("idempotency.route", event.route().unwrap_or_default().to_owned())
}

fn reason(reason: &'static str) -> KeyValue {
    KeyValue::new("idempotency.reason", reason)
}

fn outcome(outcome: &'static str) -> KeyValue {
    KeyValue::new("idempotency.outcome", outcome)
}

fn verb(verb: &'static str) -> KeyValue {
    KeyValue::new("idempotency.verb", verb)
}

fn topic(topic: &str) -> KeyValue {
    KeyValue::new("idempotency.topic", topic.to_owned())
}

impl Observer for OpenTelemetryObserver {
    fn on_event(&self, event: &Event<'_>) {
        let made = &self.instruments;
        match *event {
            Event::Claimed { takeover, took, .. } => {
                made.claim.record(took.as_secs_f64(), &[route(event)]);
                if takeover {
                    made.takeovers.add(1, &[route(event)]);
                }
                self.span(event, "idempotency claim", took);
            }
            Event::Settled { kept, not_kept, ran, took, .. } => {
                self.request(event, "settled");
                match not_kept {
                    None => made.kept.record(kept as u64, &[route(event)]),
                    Some(why) => made.not_kept.add(1, &[route(event), reason(why.name())]),
                }
                self.ended(event, ran, took);
            }
            Event::Released { ran, took, .. } => {
                self.request(event, "released");
                self.ended(event, ran, took);
            }
            Event::Replayed { age, .. } => {
                self.request(event, "replayed");
                if let Some(age) = age {
                    made.replay_age.record(age.as_secs_f64(), &[route(event)]);
                }
                self.span(event, "idempotency replay", Duration::ZERO);
            }
            Event::Refused { refusal, .. } => {
                self.request(event, "refused");
                made.refusals.add(1, &[route(event), reason(refusal.name())]);
            }
            Event::Responded { .. }
            | Event::ReplayRefused { .. }
            | Event::Unverified { .. }
            | Event::Keyless { .. }
            | Event::FailedOpen { .. }
            | Event::WouldRefuse { .. }
            | Event::WouldReplay { .. } => self.request(event, event.name()),
            Event::Waiting { .. } => made.waiting.add(1, &[route(event)]),
            Event::Waited { waited, end, .. } => {
                made.waiting.add(-1, &[route(event)]);
                made.wait.record(waited.as_secs_f64(), &[route(event), KeyValue::new("idempotency.end", end.name())]);
                self.span(event, "idempotency wait", waited);
            }
            _ => self.on_rare(event),
        }
    }
}

impl OpenTelemetryObserver {
    fn ended(&self, event: &Event<'_>, ran: Duration, took: Duration) {
        self.instruments.run.record(ran.as_secs_f64(), &[route(event)]);
        self.instruments.record.record(took.as_secs_f64(), &[route(event)]);
        self.span(event, "idempotency record", took);
    }

    fn on_rare(&self, event: &Event<'_>) {
        let made = &self.instruments;
        match *event {
            Event::ClaimLost { .. } => made.claims_lost.add(1, &[route(event)]),
            Event::Stalled { .. } => made.stalls.add(1, &[route(event)]),
            Event::StoreFailed { verb: called, .. } => made.store_errors.add(1, &[route(event), verb(called.name())]),
            Event::NotRecorded { verb: called, .. } => made.not_recorded.add(1, &[route(event), verb(called.name())]),
            Event::Detached { .. } => made.background.add(1, &[route(event)]),
            Event::BackgroundEnded { .. } => made.background.add(-1, &[route(event)]),
            Event::Dropped { reason: why, after, .. } => {
                // What is dropped at once was never in the background.
                if !after.is_zero() {
                    made.background.add(-1, &[route(event)]);
                }
                made.dropped.add(1, &[route(event), reason(why.name())]);
            }
            Event::TokenIssued { .. } => made.tokens.add(1, &[route(event), outcome("issued")]),
            Event::TokenNotIssued { .. } => made.tokens.add(1, &[route(event), outcome("failed")]),
            Event::DeadLettered { reason: why, .. } => made.dead_letters.add(1, &[route(event), reason(why.name())]),
            Event::OutboxStaged { topic: of, .. } => made.outbox.add(1, &[topic(of), outcome("staged")]),
            Event::OutboxSent { topic: of, staged, .. } => {
                let age = SystemTime::now().duration_since(staged).unwrap_or_default();
                made.outbox.add(1, &[topic(of), outcome("sent")]);
                made.outbox_delay.record(age.as_secs_f64(), &[topic(of)]);
            }
            Event::OutboxRetried { topic: of, .. } => made.outbox.add(1, &[topic(of), outcome("retried")]),
            Event::OutboxStuck { topic: of, discarded, .. } => {
                made.outbox.add(1, &[topic(of), outcome(if discarded { "discarded" } else { "stuck" })]);
            }
            Event::OutboxBacklog { unsent, oldest, .. } => {
                made.outbox_unsent.record(unsent, &[]);
                made.outbox_oldest.record(oldest.unwrap_or_default().as_secs_f64(), &[]);
            }
            Event::Reconciled { sweep, .. } => {
                made.sweeps.add(1, &[outcome("completed")]);
                for (result, count) in [
                    ("settled", sweep.settled),
                    ("released", sweep.released),
                    ("discarded", sweep.discarded),
                    ("left", sweep.left),
                    ("skipped", sweep.skipped),
                    ("failed", sweep.failed),
                ] {
                    made.reconciled.add(count as u64, &[outcome(result)]);
                }
            }
            Event::ReconcileFailed { .. } => made.sweeps.add(1, &[outcome("failed")]),
            Event::Purged { table, removed, .. } => {
                made.purged.add(removed, &[KeyValue::new("idempotency.table", table.to_owned())]);
            }
            _ => {}
        }
    }
}

impl fmt::Debug for OpenTelemetryObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTelemetryObserver").field("spans", &self.spans.is_some()).finish_non_exhaustive()
    }
}
