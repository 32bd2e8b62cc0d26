use std::{fmt, sync::Arc, time::Duration};

use tokio::{task::JoinHandle, time::sleep};

use crate::store::Operator;

use super::{SqlStore, driver::Driver, waiting::jitter};

/// How many records one round removes before it pauses.
const AT_ONCE: usize = 1000;

/// The pause within a round, so that a large backlog does not crowd out requests.
const BREATH: Duration = Duration::from_millis(100);

impl<D: Driver> SqlStore<D> {
    /// Removes expired records in the background, every so often, until what is returned is dropped.
    ///
    /// An error ends a round and not the task. One process of many is enough; several do no harm.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn purge_every(&self, pause: Duration) -> Purging {
        let (shared, space) = (Arc::downgrade(&self.shared), self.space.clone());
        Purging(tokio::spawn(async move {
            loop {
                sleep(jitter(pause.max(BREATH))).await;
                loop {
                    let Some(shared) = shared.upgrade() else { return };
                    let store = Self { shared, space: space.clone() };
                    match store.purge(AT_ONCE).await {
                        Ok(removed) if removed == AT_ONCE as u64 => sleep(BREATH).await,
                        _ => break,
                    }
                }
            }
        }))
    }
}

/// The background task of [`SqlStore::purge_every`]; it ends when this is dropped.
#[must_use = "the task ends when this is dropped"]
pub struct Purging(JoinHandle<()>);

impl Drop for Purging {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Purging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Purging")
    }
}
