//! Events. Each is reported once, here, to the observer and to `tracing`; the texts name the route and the remedy.
//!
//! Keys, scopes and credentials never reach an event's text: a key appears as its log id.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::Engine;
use crate::value::Event;
#[cfg(feature = "tracing")]
use crate::value::{RecordKey, Refusal};

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
        for observer in &self.observers {
            // A panic of the observer must not end the run. The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.on_event(event)));
        }
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
        Event::Refused { key, refusal } => {
            let (problem, detail, advice) = (refusal.name(), refusal.detail(), refusal.advice());
            info!(key = key.map(&id), problem, %detail, advice, "refused");
        }
        Event::Switched { protection, before } => warn!(?protection, ?before, "a switch has changed what is protected"),
        Event::WouldRefuse { key, refusal } => {
            let (problem, detail) = (refusal.name(), refusal.detail());
            info!(key = key.map(&id), problem, %detail, "let through, since the layer only observes: it would be refused");
        }
        Event::WouldReplay { key } => {
            info!(key = id(key), "let through, since the layer only observes: it would receive the kept answer");
        }
        Event::Waited { key, waited, ended } => trace!(key = id(key), ?waited, ended, "waited"),
        Event::Keyless { route } => trace!(route, "passed without a key"),
        Event::Unverified { status } => info!(status = status.as_u16(), "refused: the request was not verified"),
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
        Event::Settled { key, tombstone, .. } => trace!(key = id(key), tombstone, "settled"),
        Event::Released { key, .. } => debug!(key = id(key), "released"),
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
        Event::Detached { key } => debug!(key = id(key), "the client left; its work goes on"),
        Event::Dropped { key, after: None } => warn!(
            key = id(key),
            route = key.route(),
            "the client left, and its work was dropped with it; its claim lapses, and the next try runs. Without `.cancel_on_disconnect()` \
             it would have gone on"
        ),
        Event::Dropped { key, after } => warn!(
            key = id(key),
            route = key.route(),
            ?after,
            "the client left, and its work was dropped; its claim lapses. If the server is shutting down, await \
             `BackgroundTasks::wait()` first; if the work takes longer than it may, choose a longer `BackgroundTasks::max_duration(..)`"
        ),
    }
}
