use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{Relay, RelayStats, Sender, StagedMessage};
use crate::{
    sql::SqlDatabase,
    value::{Event, StoreError, doubled, jitter},
};

/// How many messages of a key are sent one after the other before other keys are looked for. That query reads past all
/// messages that wait behind a key's first one.
const IN_A_ROW: u64 = 100;

enum End {
    Sent,
    Failed,
    Overtaken,
}

/// The result of a message, and of those behind it.
pub(super) struct Landed {
    pub(super) relayed: RelayStats,
    pub(super) error: Option<StoreError>,
    /// Whether the last of them failed; `None` if the sender was not called, or if another relay has the message.
    pub(super) failed: Option<bool>,
}

impl Landed {
    pub(super) fn failed() -> Self {
        Self { relayed: RelayStats { failed: 1, ..RelayStats::default() }, error: None, failed: Some(true) }
    }
}

/// A message that is being sent.
pub(super) struct Sending<D: SqlDatabase, S> {
    relay: Relay<D, S>,
    outgoing: StagedMessage,
    leased: Instant,
}

impl<D: SqlDatabase, S: Sender> Sending<D, S> {
    pub(super) fn new(relay: Relay<D, S>, outgoing: StagedMessage, leased: Instant) -> Self {
        Self { relay, outgoing, leased }
    }

    /// Sends the message, and then those behind it of the same key and topic.
    pub(super) async fn run(mut self, stopping: Arc<AtomicBool>) -> Landed {
        let mut landed = Landed { relayed: RelayStats::default(), error: None, failed: None };
        if let Err(error) = self.send_row(&stopping, &mut landed).await {
            landed.error = Some(error);
        }
        landed
    }

    async fn send_row(&mut self, stopping: &AtomicBool, landed: &mut Landed) -> Result<(), StoreError> {
        loop {
            match self.send().await? {
                End::Sent => {
                    landed.relayed.sent += 1;
                    landed.failed = Some(false);
                }
                End::Failed => {
                    landed.relayed.failed += 1;
                    landed.failed = Some(true);
                    return Ok(());
                }
                End::Overtaken => {
                    landed.relayed.overtaken += 1;
                    return Ok(());
                }
            }
            if stopping.load(Relaxed) || landed.relayed.sent >= IN_A_ROW {
                return Ok(());
            }
            self.leased = Instant::now();
            match self.relay.outbox.lease_next(&self.outgoing, self.relay.lease()).await? {
                Some(next) => self.outgoing = next,
                None => return Ok(()),
            }
        }
    }

    async fn send(&self) -> Result<End, StoreError> {
        let Relay { outbox, sender, send_timeout, .. } = &self.relay;
        // A message that could not be sent within the lease is not begun.
        if self.leased.elapsed() > *send_timeout {
            return self.give_back(Duration::ZERO, "leased too late").await;
        }
        match timeout(*send_timeout, sender.send(self.outgoing.clone())).await {
            Ok(Ok(())) => Ok(if outbox.sent(&self.outgoing).await? {
                self.report_sent();
                End::Sent
            } else {
                End::Overtaken
            }),
            Ok(Err(error)) => self.give_back(self.pause(), &error.to_string()).await,
            Err(_) => self.give_back(self.pause(), "not sent in time").await,
        }
    }

    fn report_sent(&self) {
        let StagedMessage { message, attempt, staged, .. } = &self.outgoing;
        let observers = &self.relay.outbox.store.shared.observers;
        observers.report(&Event::OutboxSent { topic: &message.topic, attempt: *attempt, staged: *staged });
    }

    async fn give_back(&self, pause: Duration, why: &str) -> Result<End, StoreError> {
        #[cfg(feature = "tracing")]
        tracing::warn!(
            id = self.outgoing.message.id,
            topic = self.outgoing.message.topic,
            attempt = self.outgoing.attempt,
            error = why,
            ?pause,
            "a message was not sent"
        );
        let (topic, attempt) = (&*self.outgoing.message.topic, self.outgoing.attempt);
        let observers = &self.relay.outbox.store.shared.observers;
        observers.report(&Event::OutboxRetried { topic, attempt, error: why, pause });
        Ok(if self.relay.outbox.put_off(&self.outgoing, pause).await? { End::Failed } else { End::Overtaken })
    }

    fn pause(&self) -> Duration {
        let [first, longest] = self.relay.backoff;
        jitter(doubled(first, self.outgoing.attempt.saturating_sub(1), longest))
    }
}
