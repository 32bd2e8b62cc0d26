//! The wait of a duplicate while another run holds its key, on behalf of all duplicates of the key that wait in this
//! process (`waiting`).

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Engine, timer::later, waiting::Waiter};
use crate::{
    store::TransactionalStore,
    value::{Claimant, Event, StoreVerb},
};

impl Engine {
    /// Waits until the store should be asked again: the claim of `holder` has ended, or its lease may have lapsed and
    /// nobody else asks, which may take `limit`. Returns `false` if it has waited for as long as it may, which is
    /// `patience`.
    pub(crate) async fn wait(
        &self,
        waiter: &mut Waiter<'_>,
        holder: Claimant,
        limit: Duration,
        patience: Duration,
    ) -> bool {
        let (key, end) = (waiter.key, later(patience));
        loop {
            let until = waiter.next().min(end);
            let within = until.saturating_duration_since(Instant::now());
            if within.is_zero() {
                if Instant::now() >= end {
                    return waiter.is_to_ask_at_last();
                }
                if waiter.is_to_ask(limit) {
                    return true;
                }
                continue;
            }
            let changed = timeout_at(until, self.store.changed(key, holder, within));
            let Some(changed) = waiter.unless_ended(changed).await else { return true };
            match changed {
                Ok(Ok(())) if Instant::now() < until => return true,
                // A store that is late to report that the time is over has not failed.
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(error)) => {
                    let verb = StoreVerb::Changed;
                    self.report(&Event::StoreFailed { key, verb, error: &error, retried: true });
                    waiter.ask_after_a_pause();
                    let pause = sleep_until(waiter.next().min(end));
                    if waiter.unless_ended(pause).await.is_none() {
                        return true;
                    }
                }
            }
        }
    }

    /// Waits as [`wait`](Self::wait) does, for a transaction. Only a transaction of this process reports that it has
    /// ended.
    pub(crate) async fn wait_for_transaction(
        &self,
        store: &dyn TransactionalStore,
        waiter: &mut Waiter<'_>,
        patience: Duration,
    ) -> bool {
        let (key, end) = (waiter.key, later(patience));
        loop {
            waiter.ask_after_a_pause();
            let until = waiter.next().min(end);
            let within = until.saturating_duration_since(Instant::now());
            if within.is_zero() {
                if Instant::now() >= end {
                    return waiter.is_to_ask_at_last();
                }
                if waiter.is_to_ask(self.store_timeout) {
                    return true;
                }
                continue;
            }
            let left = timeout_at(until, store.left(key, within));
            let Some(left) = waiter.unless_ended(left).await else { return true };
            match left {
                Ok(Ok(())) if Instant::now() < until => return true,
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(_)) => sleep_until(until).await,
            }
        }
    }
}
