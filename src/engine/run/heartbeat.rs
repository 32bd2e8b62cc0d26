//! The heartbeat of a run.
//!
//! It is polled together with the work, after it, by the same task. So it costs no task, it stops if the work is
//! dropped, and it cannot keep the lease of work that blocks its thread. It is created when the work is first pending:
//! work that is ready at once costs neither a timer nor a renewal.
//!
//! The lease is renewed at a third of its length. It counts from the moment *before* the claim or the renewal was sent,
//! so that the end of the lease is never assumed later than the store has it.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::RunState;
use crate::{
    engine::{
        Engine,
        timer::{Timer, bounded},
    },
    store::Renewed,
    value::{Event, StoreVerb},
};

/// Renews the lease of a run until its claim is lost or ended.
pub(super) struct Heartbeat {
    timer: Option<Timer>,
    /// The renewal that is on its way. It returns when the next one is due; `None`: never.
    renewal: Option<Pin<Box<dyn Future<Output = Option<Instant>> + Send>>>,
    is_over: bool,
}

impl Heartbeat {
    /// Creates a heartbeat whose first renewal is due at `due`.
    pub(super) fn new(mut timer: Option<Timer>, due: Instant) -> Self {
        Timer::set(&mut timer, due);
        Self { timer, renewal: None, is_over: false }
    }

    /// Renews the lease if it is time.
    pub(super) fn poll(&mut self, engine: &Arc<Engine>, state: &Arc<RunState>, cx: &mut Context<'_>) {
        while !self.is_over {
            if let Some(renewal) = &mut self.renewal {
                let Poll::Ready(next) = renewal.as_mut().poll(cx) else { return };
                self.renewal = None;
                match next {
                    Some(due) => {
                        Timer::set(&mut self.timer, due);
                    }
                    None => self.is_over = true,
                }
            } else {
                if self.timer.as_mut().is_none_or(|timer| timer.poll(cx).is_pending()) {
                    return;
                }
                self.renewal = Some(Box::pin(renew(engine.clone(), state.clone())));
            }
        }
    }
}

/// Renews the lease once, and returns when the next renewal is due; `None` if there is nothing to renew any more.
///
/// A failed renewal is repeated after a tenth of the lease. Past the end of the lease the run is *overdue*: it may have
/// been taken over, but a renewal that still succeeds makes it current again.
async fn renew(engine: Arc<Engine>, state: Arc<RunState>) -> Option<Instant> {
    let (key, lease) = (&state.key, state.claim.lease);
    let sent = Instant::now();
    let ends = state.renewed()? + lease;
    report_stall(&engine, &state, sent);
    let mut limit = engine.store_timeout.min(lease / 3);
    if sent < ends {
        limit = limit.min(ends - sent);
    }
    match bounded(engine.store.renew(key, &state.claim), limit).await {
        Ok(Renewed::Done) => {
            state.set_renewed(sent);
            Some(sent + lease / 3)
        }
        Ok(Renewed::Lost) => {
            if !state.is_ending() {
                engine.report(&Event::ClaimLost { key, attempt: state.granted.attempt });
                state.lose();
            }
            None
        }
        Err(error) => {
            engine.report(&Event::StoreFailed { key, verb: StoreVerb::Renew, error: &error, retried: true });
            let next = Instant::now() + (lease / 10).clamp(Duration::from_millis(1), Duration::from_secs(1));
            if next >= ends {
                sleep_until(ends).await;
                state.set_overdue();
            }
            Some(next)
        }
    }
}

/// Reports a lease that lapsed without a try to renew it: nobody polled the run, so its handler blocked the thread.
pub(super) fn report_stall(engine: &Engine, state: &RunState, now: Instant) {
    let Some(renewed) = state.renewed() else { return };
    let after = now.duration_since(renewed);
    if after > state.claim.lease && !state.is_overdue() {
        engine.report(&Event::Stalled { key: &state.key, after });
    }
}
