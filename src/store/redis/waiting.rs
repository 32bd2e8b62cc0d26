mod room;
mod watcher;

use std::{collections::HashMap, sync::Arc};

use tokio::time::timeout;

use self::room::Room;
use super::{
    error::CommandError,
    link::{Limits, Link, Source},
};

/// Those in this process who wait, and the one connection that hears for all of them.
///
/// There is a channel for each namespace and not for each record: whoever waits marks the record, and only the ends of
/// marked claims are published. So a waiter costs no subscription, and leaves none.
pub(super) struct Waiting {
    ears: Subscriber,
    room: Arc<Room>,
    limits: Limits,
}

/// What messages are heard with.
enum Subscriber {
    None,
    One {
        link: Arc<Link>,
        /// On which connection a channel was subscribed to.
        channels: tokio::sync::Mutex<HashMap<Vec<u8>, u64>>,
    },
    #[cfg(feature = "redis-cluster")]
    Cluster(Box<super::cluster::Subscriber>),
}

impl Waiting {
    pub(super) fn new(source: Option<Source>, limits: Limits) -> Self {
        let room = Arc::new(Room::default());
        let ears = source.map_or(Subscriber::None, |source| {
            let room = Arc::clone(&room);
            let link = Arc::new(Link::new(source, limits).heard_by(move |heard| room.hear(&heard)));
            Subscriber::One { link, channels: tokio::sync::Mutex::default() }
        });
        Self { ears, room, limits }
    }

    #[cfg(feature = "redis-cluster")]
    pub(super) fn in_cluster(client: redis::cluster::ClusterClient, limits: Limits) -> Self {
        let room = Arc::new(Room::default());
        let hears = Arc::clone(&room);
        let ears = Subscriber::Cluster(Box::new(super::cluster::Subscriber::new(client, limits, move |heard| hears.hear(&heard))));
        Self { ears, room, limits }
    }

    /// Hears what is published on `channel` from now on; says whether it does.
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
