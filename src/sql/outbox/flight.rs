use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use tokio::{
    task::{Id, JoinSet},
    time::Instant,
};

use crate::{
    sql::SqlDatabase,
    value::{Event, StoreError},
};

use super::{
    Relay, RelayStats, Sender,
    sending::{Landed, Sending},
    topics::Topics,
};

/// The messages of a relay that are being sent.
pub(super) struct Flight<D: SqlDatabase, S> {
    relay: Relay<D, S>,
    sending: JoinSet<Landed>,
    /// The topic of each task, including one that has panicked.
    of: HashMap<Id, (String, u32)>,
    topics: Topics,
    /// The messages that have finished since this was last read.
    relayed: RelayStats,
    error: Option<StoreError>,
    /// If it is set, no further message is sent.
    stopping: Arc<AtomicBool>,
}

impl<D: SqlDatabase, S: Sender> Flight<D, S> {
    pub(super) fn new(relay: &Relay<D, S>) -> Self {
        Self {
            sending: JoinSet::new(),
            of: HashMap::new(),
            topics: Topics::new(relay.most_of_a_topic()),
            relayed: RelayStats::default(),
            error: None,
            stopping: Arc::default(),
            relay: relay.clone(),
        }
    }

    /// Returns the flag that stops further messages from being sent.
    pub(super) fn stopping(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopping)
    }

    pub(super) fn relayed(&self) -> RelayStats {
        self.relayed
    }

    /// Takes the database's error, if there was one.
    pub(super) fn take_error(&mut self) -> Option<StoreError> {
        self.error.take()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Leases and sends as many messages as there is room for.
    pub(super) async fn fill(&mut self) {
        loop {
            let room = self.relay.places().saturating_sub(self.sending.len()).min(self.topics.room());
            if room == 0 || self.stopping.load(Relaxed) {
                return;
            }
            let began = Instant::now();
            let leased = match self.relay.outbox.lease(room, &self.topics.full(), self.relay.lease()).await {
                Ok(leased) => leased,
                Err(error) => return self.error = Some(error),
            };
            let all = leased.len() < room;
            for outgoing in leased {
                let (topic, attempt) = (outgoing.message.topic.clone(), outgoing.attempt);
                self.topics.departed(&topic);
                let sending = Sending::new(self.relay.clone(), outgoing, began);
                let task = self.sending.spawn(sending.run(Arc::clone(&self.stopping)));
                self.of.insert(task.id(), (topic, attempt));
            }
            if all {
                return;
            }
        }
    }

    /// Polls for a message that has finished; `false` if none is being sent.
    pub(super) fn poll_landed(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let (id, landed) = match self.sending.poll_join_next_with_id(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(false),
            Poll::Ready(Some(Ok(landed))) => landed,
            Poll::Ready(Some(Err(panic))) => {
                self.report_panic(panic.id());
                (panic.id(), Landed::failed())
            }
        };
        self.relayed.add(landed.relayed);
        self.error = self.error.take().or(landed.error);
        if let Some((topic, _)) = self.of.remove(&id) {
            self.topics.landed(&topic, landed.failed);
        }
        Poll::Ready(true)
    }

    /// Reports a message whose sender has panicked: it is tried again once its lease is over.
    fn report_panic(&self, id: Id) {
        if let Some((topic, attempt)) = self.of.get(&id) {
            let (attempt, error, pause) = (*attempt, "the sender has panicked", self.relay.lease());
            let observers = &self.relay.outbox.store.shared.observers;
            observers.report(&Event::OutboxRetried { topic, attempt, error, pause });
        }
    }
}
