//! The claims of a process that have waiters.
//!
//! Waiters of one claim share a `Place`, and with it the task that watches the record. The map has weak references, so
//! the last waiter that leaves ends the task. Places are dropped only while the map is unlocked, since dropping one
//! locks it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use redis::{PushInfo, PushKind, Value};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};

use crate::{store::redis::error::CommandError, value::Claimant};

/// What is known of a claim that has waiters.
#[derive(Clone)]
pub(super) enum Known {
    Runs,
    Ended,
    Failed(CommandError),
}

/// A claim and its waiters in this process: one task watches the claim for all of them.
pub(super) struct Place {
    room: Arc<Room>,
    name: Vec<u8>,
    holder: Claimant,
    /// What the watching task has found.
    known: watch::Receiver<Known>,
    /// Notified by a message about the record.
    heard: Arc<Notify>,
    /// The watching task, which ends with the last waiter.
    watcher: AbortHandle,
}

impl Place {
    /// Waits until the claim is no longer running.
    pub(super) async fn ended(&self) -> Result<(), CommandError> {
        let mut known = self.known.clone();
        match known.wait_for(|known| !matches!(known, Known::Runs)).await.as_deref() {
            Ok(Known::Failed(trouble)) => Err(trouble.clone()),
            _ => Ok(()),
        }
    }

    /// Returns whether the task still watches.
    fn is_watched(&self) -> bool {
        matches!(*self.known.borrow(), Known::Runs)
    }
}

/// Runs when the last waiter has left.
impl Drop for Place {
    fn drop(&mut self) {
        self.watcher.abort();
        let mut places = self.room.places();
        if let Some(claims) = places.get_mut(&self.name) {
            claims.retain(|claim| claim.strong_count() > 0);
            if claims.is_empty() {
                places.remove(&self.name);
            }
        }
    }
}

/// The claims that have waiters, by the names of their records, so that a message finds its waiters.
#[derive(Default)]
pub(super) struct Room(Mutex<HashMap<Vec<u8>, Vec<Weak<Place>>>>);

impl Room {
    /// Locks the map. It is held for one operation.
    fn places(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Weak<Place>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place of a claim; `watch` begins to watch it if it is not watched yet.
    ///
    /// A place whose watcher has ended is not used again: what it knows is final.
    pub(super) fn enter(
        self: &Arc<Self>,
        name: &[u8],
        holder: Claimant,
        watch: impl FnOnce(watch::Sender<Known>, Arc<Notify>) -> AbortHandle,
    ) -> Arc<Place> {
        // Dropped after the places are unlocked: dropping a place locks them.
        let mut there = Vec::new();
        let mut places = self.places();
        let claims = places.entry(name.to_owned()).or_default();
        there.extend(claims.iter().filter_map(Weak::upgrade));
        if let Some(place) = there.iter().find(|place| place.holder == holder && place.is_watched()) {
            return Arc::clone(place);
        }
        let (sender, known) = watch::channel(Known::Runs);
        let heard = Arc::new(Notify::new());
        let watcher = watch(sender, Arc::clone(&heard));
        let place = Place { room: Arc::clone(self), name: name.to_owned(), holder, known, heard, watcher };
        let place = Arc::new(place);
        claims.push(Arc::downgrade(&place));
        place
    }

    /// Hands a message to the waiters of its record, or wakes all after a disconnection.
    pub(super) fn hear(&self, heard: &PushInfo) {
        let places = match (&heard.kind, &*heard.data) {
            (PushKind::Message | PushKind::SMessage, [_, Value::BulkString(name)]) => self.of(name),
            // No message is received until a channel is subscribed again, so all records have to be read.
            (PushKind::Disconnection, _) => self.places().values().flatten().filter_map(Weak::upgrade).collect(),
            _ => return,
        };
        for place in places {
            place.heard.notify_waiters();
        }
    }

    /// Returns the places of a name. None of them is dropped while the places are locked.
    fn of(&self, name: &[u8]) -> Vec<Arc<Place>> {
        self.places().get(name).map_or_else(Vec::new, |claims| claims.iter().filter_map(Weak::upgrade).collect())
    }
}
