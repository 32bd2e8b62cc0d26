use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::value::{Claimant, RecordKey, StoreError};

use super::{SqlStore, driver::Driver, values::bytes};

/// How soon a record is looked at again; each further look comes later, up to the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How many wait for a record, and what wakes them, by its id.
type Places = HashMap<Vec<u8>, (usize, Arc<Notify>)>;

/// Where those who wait in this process are found by the ends of claims in this process.
#[derive(Default)]
pub(super) struct Room(Mutex<Places>);

impl Room {
    /// Wakes all who wait for a record.
    pub(super) fn wake(&self, id: &[u8]) {
        let notify = self.lock().get(id).map(|(_, notify)| Arc::clone(notify));
        if let Some(notify) = notify {
            notify.notify_waiters();
        }
    }

    /// Waits for the end of a claim in this process, for `within` at most.
    pub(super) async fn wait(&self, id: &[u8], within: Duration) {
        let place = self.enter(id);
        let _ = timeout(within, place.notify.notified()).await;
    }

    fn enter<'a>(&'a self, id: &'a [u8]) -> Place<'a> {
        let mut places = self.lock();
        let (count, notify) = places.entry(id.to_vec()).or_default();
        *count += 1;
        Place { room: self, id, notify: Arc::clone(notify) }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those who wait, given up when it is dropped.
struct Place<'a> {
    room: &'a Room,
    id: &'a [u8],
    notify: Arc<Notify>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.room.lock();
        if let Some((count, _)) = places.get_mut(self.id) {
            *count -= 1;
            if *count == 0 {
                places.remove(self.id);
            }
        }
    }
}

impl<D: Driver> SqlStore<D> {
    pub(super) async fn wait(&self, key: &RecordKey, holder: Claimant, within: Duration) -> Result<(), StoreError> {
        let (began, id) = (Instant::now(), self.space.id(key));
        let place = self.shared.room.enter(&id);
        let mut pause = FIRST_PAUSE;
        loop {
            let mut woken = pin!(place.notify.notified());
            // From here on an end counts, whatever is found before anybody waits for it.
            woken.as_mut().enable();
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() || !self.runs_under(&id, holder).await? {
                return Ok(());
            }
            let left = within.saturating_sub(began.elapsed());
            let _ = timeout(left.min(jitter(pause)), woken).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn runs_under(&self, id: &[u8], holder: Claimant) -> Result<bool, StoreError> {
        let holder = holder.to_bytes();
        let rows = self.rows(&self.shared.statements.runs, &[bytes(id), bytes(&holder)]).await?;
        Ok(!rows.is_empty())
    }
}

/// Between a half and the whole of `time`, so that many who wait do not come back at once.
pub(super) fn jitter(time: Duration) -> Duration {
    let [random, ..] = Claimant::random().to_bytes();
    time / 2 + time * u32::from(random) / 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_up() {
        let room = Room::default();
        let (one, other) = (room.enter(b"a"), room.enter(b"a"));
        drop(one);
        assert_eq!(room.lock().len(), 1);
        drop(other);
        assert_eq!(room.lock().len(), 0);
        room.wake(b"a");
    }
}
