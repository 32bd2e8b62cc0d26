use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{
    store::{Claimant, Outgoing, SqlDatabase},
    value::StoreError,
};

use super::{Relay, Relayed, Sender};

/// How many messages a round sends.
pub(super) const ROUND: u64 = 1000;

/// How long a lease is, in times that a message may take to be sent: one to come to it, one to send it, one to mark it.
const LEASE: u32 = 3;

/// How many messages of a key are sent one after the other before the others are looked at. A look reads past all that
/// waits behind a key's first message.
const IN_A_ROW: u64 = 100;

enum End {
    Sent,
    Failed,
    Overtaken,
}

impl<D: SqlDatabase, S: Sender> Relay<D, S> {
    /// Sends what is due, and leases no more once it is `stopping`.
    pub(super) async fn round(&self, stopping: &Arc<AtomicBool>) -> Result<Relayed, StoreError> {
        let lease = self.send_timeout.saturating_mul(LEASE);
        let mut sending = JoinSet::new();
        let (mut relayed, mut trouble) = (Relayed::default(), None);
        loop {
            let room = self.at_once.saturating_sub(sending.len());
            if room > 0 && trouble.is_none() && relayed.all() < ROUND && !stopping.load(Relaxed) {
                let began = Instant::now();
                match self.outbox.lease(room, lease).await {
                    Ok(leased) => {
                        for outgoing in leased {
                            let sender = Sending { relay: self.clone(), outgoing, leased: began };
                            sending.spawn(sender.run(lease, Arc::clone(stopping)));
                        }
                    }
                    Err(error) => trouble = Some(error),
                }
            }
            match sending.join_next().await {
                None => return trouble.map_or(Ok(relayed), Err),
                Some(Ok((done, error))) => {
                    relayed.add(done);
                    trouble = trouble.or(error);
                }
                // The sender has panicked.
                Some(Err(_)) => relayed.failed += 1,
            }
        }
    }
}

/// A message on its way.
struct Sending<D: SqlDatabase, S> {
    relay: Relay<D, S>,
    outgoing: Outgoing,
    leased: Instant,
}

impl<D: SqlDatabase, S: Sender> Sending<D, S> {
    /// Sends it, and then those behind it of the same key.
    async fn run(mut self, lease: Duration, stopping: Arc<AtomicBool>) -> (Relayed, Option<StoreError>) {
        let mut relayed = Relayed::default();
        loop {
            match self.send().await {
                Ok(End::Sent) => relayed.sent += 1,
                Ok(End::Failed) => {
                    relayed.failed += 1;
                    break;
                }
                Ok(End::Overtaken) => {
                    relayed.overtaken += 1;
                    break;
                }
                Err(error) => return (relayed, Some(error)),
            }
            if stopping.load(Relaxed) || relayed.sent >= IN_A_ROW {
                break;
            }
            self.leased = Instant::now();
            match self.relay.outbox.lease_next(&self.outgoing, lease).await {
                Ok(Some(next)) => self.outgoing = next,
                Ok(None) => break,
                Err(error) => return (relayed, Some(error)),
            }
        }
        (relayed, None)
    }

    async fn send(&self) -> Result<End, StoreError> {
        let Relay { outbox, sender, send_timeout, .. } = &self.relay;
        // What cannot be done within the lease is not begun.
        if self.leased.elapsed() > *send_timeout {
            return self.give_back(Duration::ZERO, "leased too late").await;
        }
        match timeout(*send_timeout, sender.send(self.outgoing.clone())).await {
            Ok(Ok(())) => Ok(if outbox.sent(&self.outgoing).await? { End::Sent } else { End::Overtaken }),
            Ok(Err(error)) => self.give_back(self.pause(), &error.to_string()).await,
            Err(_) => self.give_back(self.pause(), "not sent in time").await,
        }
    }

    #[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
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
        Ok(if self.relay.outbox.put_off(&self.outgoing, pause).await? { End::Failed } else { End::Overtaken })
    }

    fn pause(&self) -> Duration {
        let [random, ..] = Claimant::random().to_bytes();
        let [first, longest] = self.relay.backoff;
        pause(first, longest, self.outgoing.attempt, random)
    }
}

/// `first`, doubled with each attempt up to `longest`, between a half and the whole of it.
fn pause(first: Duration, longest: Duration, attempt: u32, random: u8) -> Duration {
    let doubled = 1_u32.checked_shl(attempt.saturating_sub(1)).filter(|times| *times > 0).unwrap_or(u32::MAX);
    let whole = first.saturating_mul(doubled).min(longest);
    whole / 2 + whole / 512 * u32::from(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let [first, longest] = [1, 300].map(Duration::from_secs);
        let shortest = |attempt| pause(first, longest, attempt, 0).as_millis();
        assert_eq!([1, 2, 3, 9, 10, 40, u32::MAX].map(shortest), [500, 1000, 2000, 128_000, 150_000, 150_000, 150_000]);
        assert!(pause(first, longest, 1, 255) < first);
        assert!(pause(Duration::MAX, Duration::MAX, 5, 255) > Duration::from_secs(1));
    }
}
