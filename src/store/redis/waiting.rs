//! Waiting for the end of a running record.
//!
//! - `room`: the claims that somebody of this process waits for, by the name of their record.
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

mod room;
mod watcher;

use std::{collections::HashMap, sync::Arc};

use tokio::time::timeout;

use self::room::Room;
use super::{
    connection::{Limits, Link, Source},
    error::CommandError,
};

/// The waiters of this process, and the one connection that receives messages for all of them.
///
/// There is a channel for each namespace and not for each record: a waiter marks the record, and only the ends of
/// marked claims are published. So a waiter needs no subscription of its own.
pub(super) struct Waiting {
    /// Receives the messages, if the connection can.
    ears: Subscriber,
    /// The waiters, which a message is handed to.
    room: Arc<Room>,
    /// The time limits of the connection for messages.
    limits: Limits,
}

/// The receiver of messages.
enum Subscriber {
    None,
    One {
        link: Arc<Link>,
        /// The connection on which each channel was subscribed.
        channels: tokio::sync::Mutex<HashMap<Vec<u8>, u64>>,
    },
    #[cfg(feature = "redis-cluster")]
    Cluster(Box<super::connection::Subscriber>),
}

impl Waiting {
    /// Creates it for one server; without a source no messages are received.
    pub(super) fn new(source: Option<Source>, limits: Limits) -> Self {
        let room = Arc::new(Room::default());
        let ears = source.map_or(Subscriber::None, |source| {
            let room = Arc::clone(&room);
            let link = Arc::new(Link::new(source, limits).heard_by(move |heard| room.hear(&heard)));
            Subscriber::One { link, channels: tokio::sync::Mutex::default() }
        });
        Self { ears, room, limits }
    }

    /// Creates it for a cluster, whose messages are sharded.
    #[cfg(feature = "redis-cluster")]
    pub(super) fn in_cluster(client: redis::cluster::ClusterClient, limits: Limits) -> Self {
        let room = Arc::new(Room::default());
        let hears = Arc::clone(&room);
        let ears = Subscriber::Cluster(Box::new(super::connection::Subscriber::new(client, limits, move |heard| {
            hears.hear(&heard);
        })));
        Self { ears, room, limits }
    }

    /// Subscribes to `channel`; returns whether messages are received from now on.
    async fn listen(&self, channel: &[u8]) -> Result<bool, CommandError> {
        let (link, channels) = match &self.ears {
            Subscriber::None => return Ok(false),
            Subscriber::One { link, channels } => (link, channels),
            #[cfg(feature = "redis-cluster")]
            Subscriber::Cluster(ears) => return ears.listen(channel).await.map(|()| true),
        };
        let mut channels = channels.lock().await;
        let mut live = link.connected().await?;
        if channels.get(channel) == Some(&live.number) {
            return Ok(true);
        }
        let subscribed = match timeout(self.limits.command, live.connection.subscribe(channel)).await {
            Ok(answer) => answer.map_err(CommandError::Failed),
            Err(_) => Err(CommandError::NoAnswer),
        };
        match subscribed {
            Ok(()) => drop(channels.insert(channel.to_owned(), live.number)),
            Err(_) => link.give_up(live.number),
        }
        subscribed.map(|()| true)
    }
}
