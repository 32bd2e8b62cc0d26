//! Events. Each is reported once, here, to the observer and to `tracing`; the texts name the route and the remedy.
//!
//! Keys, scopes and credentials never reach an event's text: a key appears as its log id.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::Engine;
use crate::value::Event;
#[cfg(feature = "tracing")]
use crate::value::{DropReason, RecordKey, Refusal};

impl Engine {
    /// Returns the time since `moment`, if anybody observes: otherwise no clock is read, and it is zero.
    pub(crate) fn observed_since(&self, moment: Option<Instant>) -> Duration {
        moment.filter(|_| !self.observers.is_empty()).map_or(Duration::ZERO, |moment| moment.elapsed())
    }

    /// Returns how old an answer is that was kept at `kept`, if anybody observes.
    pub(crate) fn observed_age(&self, kept: Option<SystemTime>) -> Option<Duration> {
        let kept = kept.filter(|_| !self.observers.is_empty())?;
        Some(SystemTime::now().duration_since(kept).unwrap_or_default())
    }

    /// Reports an event to the observers and, with the feature, to `tracing`.
    pub(crate) fn report(&self, event: &Event<'_>) {
        #[cfg(feature = "tracing")]
        trace(self, event);
        self.observers.report(event);
    }

    /// Returns the text that stands for a key in logs.
    #[cfg(feature = "tracing")]
    pub(crate) fn log_id(&self, key: &RecordKey) -> String {
        self.secret.as_ref().map_or_else(|| key.log_id(), |secret| key.log_id_with(secret))
    }
}

/// Keys are shown as digests, which are computed only if the level is enabled.
#[cfg(feature = "tracing")]
fn trace(engine: &Engine, event: &Event<'_>) {
    use tracing::{debug, error, info, trace, warn};

    let id = |key: &RecordKey| engine.log_id(key);

    match *event {
        Event::Refused { refusal: &Refusal::ExtensionMissing { type_name: of_type }, .. } => error!(
            problem = "extension-missing",
            "no `{of_type}` in the request's extensions, which `scope::extension` reads: the layer that inserts it has to be \
             outside this layer. With Axum the later call is the outer one: \
             `.layer(idempotency).layer(authentication)`. If some requests have none, call `.optional()` on the scope",
        ),
        Event::Refused { route, key, refusal } => {
            let (problem, detail, advice) = (refusal.name(), refusal.detail(), refusal.advice());
            info!(key = key.map(&id), route, problem, %detail, advice, "refused");
        }
        Event::Switched { protection, before } => warn!(?protection, ?before, "a switch has changed what is protected"),
        Event::WouldRefuse { route, key, refusal } => {
            let (problem, detail) = (refusal.name(), refusal.detail());
            info!(key = key.map(&id), route, problem, %detail, "let through, since the layer only observes: it would be refused");
        }
        Event::WouldReplay { key } => {
            info!(key = id(key), "let through, since the layer only observes: it would receive the kept answer");
        }
        Event::Waiting { key } => trace!(key = id(key), "waits for another run"),
        Event::Waited { key, waited, end } => trace!(key = id(key), ?waited, %end, "waited"),
        Event::Keyless { route } => trace!(route, "passed without a key"),
        Event::Unverified { route, status } => {
            info!(route, status = status.as_u16(), "refused: the request was not verified");
        }
        Event::Replayed { key, .. } => debug!(key = id(key), "replayed"),
        Event::ReplayRefused { key, status } => info!(key = id(key), status = status.as_u16(), "refused to replay"),
        Event::Responded { key } => debug!(key = id(key), "responded"),
        Event::Claimed { key, attempt, takeover: true, .. } => {
            warn!(
                key = id(key),
                route = key.route(),
                attempt,
                "claimed after the lease of the attempt before had lapsed: its process died, or stood still. The handler runs \
                 again, and sees it by `Operation::attempt()`; if it must not, choose `Policy::at_most_once()`"
            );
        }
        Event::Claimed { key, attempt, .. } => trace!(key = id(key), attempt, "claimed"),
        Event::Settled { key, not_kept: None, .. } => trace!(key = id(key), "settled"),
        Event::Settled { key, not_kept: Some(why), .. } => debug!(key = id(key), %why, "settled without its answer"),
        Event::Released { key, .. } => debug!(key = id(key), "released"),
        Event::Withdrawn { key } => debug!(key = id(key), "released a claim that the store had not answered"),
        Event::ClaimLost { key, attempt } => {
            warn!(
                key = id(key),
                route = key.route(),
                attempt,
                "the claim was lost while the handler ran, so its answer is not recorded: it was not renewed within its lease, \
                 or an operator has ended it. Choose a longer `.lease(..)`, or let the handler stop at `Operation::lost()`"
            );
        }
        Event::Stalled { key, after } => {
            warn!(
                key = id(key),
                route = key.route(),
                ?after,
                "a handler blocked its thread for longer than its lease, so that a duplicate could have run beside it: move \
                 what blocks into `tokio::task::spawn_blocking`, or choose a longer `.lease(..)`"
            );
        }
        Event::StoreFailed { key, verb, error, retried } => {
            let error = error as &dyn std::error::Error;
            warn!(key = id(key), route = key.route(), %verb, error, retried, "the store failed");
        }
        Event::NotRecorded { key, verb } => {
            error!(
                key = id(key),
                route = key.route(),
                %verb,
                "given up: how the request ended is not recorded, its claim lapses"
            );
        }
        Event::FailedOpen { key, error } => warn!(
            key = id(key),
            route = key.route(),
            error = error as &dyn std::error::Error,
            "let through unprotected, since the store did not claim its key: a duplicate runs too. Without `.fail_open()`, or \
             `.fail_open_when_full()` if the store is full, it would have been refused (503)"
        ),
        _ => trace_departures(engine, event),
    }
}

/// What is reported of clients that have left, and of messages.
#[cfg(feature = "tracing")]
fn trace_departures(engine: &Engine, event: &Event<'_>) {
    use tracing::{debug, info, warn};

    let id = |key: &RecordKey| engine.log_id(key);

    match *event {
        Event::Detached { key } => debug!(key = id(key), "the client left; its work goes on"),
        Event::BackgroundEnded { key, after } => {
            debug!(key = id(key), ?after, "the work of a client that left has ended");
        }
        Event::Dropped { key, reason, after } => {
            let advice = advice_on_drop(reason);
            warn!(
                key = id(key),
                route = key.route(),
                %reason,
                ?after,
                advice,
                "the client left, and its work was dropped; its claim lapses"
            );
        }
        Event::DeadLettered { route, key, reason } => {
            info!(key = key.map(&id), route, %reason, "a message is to be put aside");
        }
        // The other events come from elsewhere, and their sources write to the log as well.
        _ => {}
    }
}

/// Returns what an operator can do about work that was dropped.
#[cfg(feature = "tracing")]
fn advice_on_drop(reason: DropReason) -> &'static str {
    match reason {
        DropReason::CancelOnDisconnect => {
            "the next try runs; without `.cancel_on_disconnect()` the work would have gone on"
        }
        DropReason::NoRuntime => "the layer has to be polled in a Tokio runtime",
        DropReason::TimedOut => "if the work may take longer, choose a longer `BackgroundTasks::max_duration(..)`",
        DropReason::Shutdown => "await `BackgroundTasks::wait()` before the runtime ends",
    }
}
