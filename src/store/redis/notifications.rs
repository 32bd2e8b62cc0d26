//! Waiting for the end of a running record.
//!
//! - `claim_watches`: the claims that somebody of this process waits for, by the name of their record.
//! - `watcher`: one task for each such claim. It marks the record, waits for a message, and reads the record again.
//!
//! A message may be lost, and the channel may not be permitted. So the record is also read once a second, or four times
//! a second without messages. However many requests wait, one task reads.
//!
//! # From the wait to the wake
//!
//! 1. `changed` registers in the room. The first waiter of a claim spawns its watcher.
//! 2. The watcher subscribes to the channel of the namespace, unless that was done on this connection before.
//! 3. It marks the record by `watch.lua`, which also says whether the claim still runs.
//! 4. Whatever ends the claim sees the mark and publishes the record's name.
//! 5. The message reaches every process that has subscribed; each looks the name up in its room and wakes its watcher.
//! 6. The watcher reads the record again and wakes the waiters if the claim has ended.

mod claim_watches;
mod watcher;

use std::{collections::HashMap, sync::Arc};

use tokio::time::timeout;

use self::claim_watches::ClaimWatches;
use super::{
    connection::{Limits, ManagedConnection, Target},
    error::CommandError,
};

/// The waiters of this process, and the one connection that receives messages for all of them.
///
/// There is a channel for each namespace and not for each record: a waiter marks the record, and only the ends of
/// marked claims are published. So a waiter needs no subscription of its own.
pub(super) struct Notifications {
    /// Receives the messages, if the connection can.
    subscriber: Subscriber,
    /// The waiters, which a message is handed to.
    watches: Arc<ClaimWatches>,
    /// The time limits of the connection for messages.
    limits: Limits,
}

/// The receiver of messages.
enum Subscriber {
    None,
    One {
        managed: Arc<ManagedConnection>,
        /// The connection on which each channel was subscribed.
        channels: tokio::sync::Mutex<HashMap<Vec<u8>, u64>>,
    },
    #[cfg(feature = "redis-cluster")]
    Cluster(Box<super::connection::ClusterSubscriber>),
}

impl Notifications {
    /// Creates it for one server; without a source no messages are received.
    pub(super) fn new(target: Option<Target>, limits: Limits) -> Self {
        let watches = Arc::new(ClaimWatches::default());
        let subscriber = target.map_or(Subscriber::None, |target| {
            let watches = Arc::clone(&watches);
            let managed =
                Arc::new(ManagedConnection::new(target, limits).with_push_handler(move |push| watches.on_push(&push)));
            Subscriber::One { managed, channels: tokio::sync::Mutex::default() }
        });
        Self { subscriber, watches, limits }
    }

    /// Creates it for a cluster, whose messages are sharded.
    #[cfg(feature = "redis-cluster")]
    pub(super) fn in_cluster(client: redis::cluster::ClusterClient, limits: Limits) -> Self {
        let watches = Arc::new(ClaimWatches::default());
        let receiver = Arc::clone(&watches);
        let subscriber =
            Subscriber::Cluster(Box::new(super::connection::ClusterSubscriber::new(client, limits, move |push| {
                receiver.on_push(&push);
            })));
        Self { subscriber, watches, limits }
    }

    /// Subscribes to `channel`; returns whether messages are received from now on.
    async fn listen(&self, channel: &[u8]) -> Result<bool, CommandError> {
        let (managed, channels) = match &self.subscriber {
            Subscriber::None => return Ok(false),
            Subscriber::One { managed, channels } => (managed, channels),
            #[cfg(feature = "redis-cluster")]
            Subscriber::Cluster(subscriber) => return subscriber.listen(channel).await.map(|()| true),
        };
        let mut channels = channels.lock().await;
        let mut current = managed.connected().await?;
        if channels.get(channel) == Some(&current.number) {
            return Ok(true);
        }
        let subscribed = match timeout(self.limits.command, current.connection.subscribe(channel)).await {
            Ok(answer) => answer.map_err(CommandError::Failed),
            Err(_) => Err(CommandError::NoAnswer),
        };
        match subscribed {
            Ok(()) => drop(channels.insert(channel.to_owned(), current.number)),
            Err(_) => managed.give_up(current.number),
        }
        subscribed.map(|()| true)
    }
}
