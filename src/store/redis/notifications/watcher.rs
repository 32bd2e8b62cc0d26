//! The task that watches one claim for all its waiters.
//!
//! The order matters: first the subscription, then the mark, then the wait. A claim that ends between any two of them
//! is seen by the next step, since the mark is a script that reports whether the claim still runs.

use std::{pin::pin, sync::Arc, time::Duration};

use redis::Value;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::{
    store::redis::{
        RedisStore,
        command::Argument,
        connection::RetryOnDisconnect,
        error::CommandError,
        record::{OWNED, owned_by},
        scripts::WATCH,
    },
    value::{Claimant, RecordKey, StoreError, jitter},
};

use super::claim_watches::WatchStatus;

/// How often a record is read while no message arrives: a message may be lost, and an expiry is not published.
const POLL_INTERVAL: Duration = Duration::from_millis(1_250);
/// The same if no connection receives messages.
const POLL_INTERVAL_WITHOUT_MESSAGES: Duration = Duration::from_millis(250);

impl RedisStore {
    /// Waits until the record is no longer running under `holder`, but not longer than `within`.
    ///
    /// However many callers wait for a claim in this process, its record is read by one of them at a time.
    pub(in crate::store::redis) async fn wait(
        &self,
        key: &RecordKey,
        holder: Claimant,
        within: Duration,
    ) -> Result<(), StoreError> {
        if within.is_zero() {
            return Ok(());
        }
        let name = self.prefix.name(key);
        let claim = self.shared.notifications.watches.join(&name, holder, |status, message| {
            tokio::spawn(self.clone().watch(name.clone(), holder, status, message)).abort_handle()
        });
        match timeout(within, claim.ended()).await {
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    /// Watches a claim until it has ended or cannot be read, and publishes that.
    async fn watch(self, name: Vec<u8>, holder: Claimant, status: watch::Sender<WatchStatus>, message: Arc<Notify>) {
        let channel = self.channel(Argument::Bytes(&name));
        loop {
            let mut woken = pin!(message.notified());
            // A message counts from here on, even if it arrives before it is awaited.
            woken.as_mut().enable();
            let listens =
                matches!(timeout(POLL_INTERVAL, self.shared.notifications.listen(&channel)).await, Ok(Ok(true)));
            let found = match self.is_running_under(&name, holder, listens).await {
                Ok(true) => {
                    let again = if listens { POLL_INTERVAL } else { POLL_INTERVAL_WITHOUT_MESSAGES };
                    let _ = timeout(jitter(again), woken).await;
                    continue;
                }
                Ok(false) => WatchStatus::Ended,
                Err(error) => WatchStatus::Failed(error),
            };
            status.send_replace(found);
            return;
        }
    }

    /// Reads the record, and marks it as waited for if messages are received.
    async fn is_running_under(&self, name: &[u8], holder: Claimant, listens: bool) -> Result<bool, CommandError> {
        if listens {
            // The mark changes the record.
            self.shared.own_claims.forget(holder);
            match self
                .transport()
                .script(&WATCH, Argument::Bytes(name), &[Argument::Bytes(&holder.to_bytes())], RetryOnDisconnect::Yes)
                .await
            {
                Ok(Value::Int(runs)) => return Ok(runs == 1),
                Ok(_) => return Err(CommandError::UnexpectedReply),
                Err(error) if error.refuses_writes() => {}
                Err(error) => return Err(error),
            }
        }
        let mut command = redis::cmd("GETRANGE");
        command.arg(name).arg(0).arg(OWNED - 1);
        match self.transport().command(&command, RetryOnDisconnect::Yes).await? {
            Value::BulkString(head) => Ok(*head == owned_by(holder)),
            _ => Err(CommandError::UnexpectedReply),
        }
    }
}
