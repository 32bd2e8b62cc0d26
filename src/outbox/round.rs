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
    store::{Claimant, Outbox, Outgoing, SqlDatabase},
    value::StoreError,
};

use super::{Relay, Relayed, Sender};

/// How many messages a round sends.
pub(super) const ROUND: u64 = 1000;

/// How long a lease is, in times that a message may take to be sent: one to come to it, one to send it, one to mark it.
const LEASE: u32 = 3;

enum End {
    Sent,
    Failed,
    Overtaken,
}

impl<D: SqlDatabase, S: Sender> Relay<D, S> {
    /// Sends what is due, and leases no more once it is `stopping`.
    pub(super) async fn round(&self, stopping: &AtomicBool) -> Result<Relayed, StoreError> {
        let lease = self.send_timeout.saturating_mul(LEASE);
        let mut sending = JoinSet::new();
        let (mut relayed, mut left, mut trouble) = (Relayed::default(), ROUND, None);
        loop {
            let room = self.at_once.saturating_sub(sending.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
            if room > 0 && trouble.is_none() && !stopping.load(Relaxed) {
                let began = Instant::now();
                match self.outbox.lease(room, lease).await {
                    Ok(leased) => {
                        left = left.saturating_sub(leased.len() as u64);
                        for outgoing in leased {
                            sending.spawn(self.one(outgoing, began).go());
                        }
                    }
                    Err(error) => trouble = Some(error),
                }
            }
            match sending.join_next().await {
                None => return trouble.map_or(Ok(relayed), Err),
                Some(Ok(Ok(End::Sent))) => relayed.sent += 1,
                Some(Ok(Ok(End::Overtaken))) => relayed.overtaken += 1,
                // It has panicked.
                Some(Ok(Ok(End::Failed)) | Err(_)) => relayed.failed += 1,
                Some(Ok(Err(error))) => trouble = Some(error),
            }
        }
    }

    fn one(&self, outgoing: Outgoing, leased: Instant) -> Sending<D, S> {
        let (outbox, sender) = (self.outbox.clone(), Arc::clone(&self.sender));
        let Self { send_timeout, backoff: [first, longest], .. } = *self;
        Sending { outbox, sender, outgoing, leased, send_timeout, first, longest }
    }
}

/// A message on its way.
struct Sending<D: SqlDatabase, S> {
    outbox: Outbox<D>,
    sender: Arc<S>,
    outgoing: Outgoing,
    leased: Instant,
    send_timeout: Duration,
    first: Duration,
    longest: Duration,
}

impl<D: SqlDatabase, S: Sender> Sending<D, S> {
    async fn go(self) -> Result<End, StoreError> {
        // What cannot be done within the lease is not begun.
        if self.leased.elapsed() > self.send_timeout {
            return self.give_back(Duration::ZERO, "leased too late").await;
        }
        match timeout(self.send_timeout, self.sender.send(self.outgoing.clone())).await {
            Ok(Ok(())) => Ok(if self.outbox.sent(&self.outgoing).await? { End::Sent } else { End::Overtaken }),
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
        Ok(if self.outbox.put_off(&self.outgoing, pause).await? { End::Failed } else { End::Overtaken })
    }

    fn pause(&self) -> Duration {
        let [random, ..] = Claimant::random().to_bytes();
        pause(self.first, self.longest, self.outgoing.attempt, random)
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
