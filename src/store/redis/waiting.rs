use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{PushInfo, PushKind, Value};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::value::{Claimant, RecordKey, StoreError};

use super::{
    RedisStore,
    error::Trouble,
    line::Again,
    link::{Limits, Link, Source, jitter},
    record::{OWNED, owned_by},
    scripts::WATCH,
};

/// How often a record is looked at while nothing is heard of it: a message may be lost, and an expiry is not published.
const AGAIN: Duration = Duration::from_millis(1_250);
/// The same where there is no connection that hears messages.
const AGAIN_UNHEARD: Duration = Duration::from_millis(250);

/// Those in this process who wait, and the one connection that hears for all of them.
///
/// There is a channel for each namespace and not for each record: whoever waits marks the record, and only the ends of
/// marked claims are published. So a waiter costs no subscription, and leaves none.
pub(super) struct Waiting {
    ears: Ears,
    room: Arc<Room>,
    limits: Limits,
}

/// What messages are heard with.
enum Ears {
    None,
    One {
        link: Arc<Link>,
        /// On which connection a channel was subscribed to.
        channels: tokio::sync::Mutex<HashMap<Vec<u8>, u64>>,
    },
    #[cfg(feature = "redis-cluster")]
    Cluster(Box<super::cluster::Ears>),
}

/// How many wait for a record, and what wakes them, by its name.
type Places = HashMap<Vec<u8>, (usize, Arc<Notify>)>;

/// Where those who wait are found by those who hear.
#[derive(Default)]
struct Room {
    places: Mutex<Places>,
}

impl Waiting {
    pub(super) fn new(source: Option<Source>, limits: Limits) -> Self {
        let room = Arc::new(Room::default());
        let ears = source.map_or(Ears::None, |source| {
            let room = Arc::clone(&room);
            let link = Arc::new(Link::new(source, limits).heard_by(move |heard| room.hear(&heard)));
            Ears::One { link, channels: tokio::sync::Mutex::default() }
        });
        Self { ears, room, limits }
    }

    #[cfg(feature = "redis-cluster")]
    pub(super) fn in_cluster(client: redis::cluster::ClusterClient, limits: Limits) -> Self {
        let room = Arc::new(Room::default());
        let hears = Arc::clone(&room);
        let ears = Ears::Cluster(Box::new(super::cluster::Ears::new(client, limits, move |heard| hears.hear(&heard))));
        Self { ears, room, limits }
    }

    /// Hears what is published on `channel` from now on; says whether it does.
    async fn listen(&self, channel: &[u8]) -> Result<bool, Trouble> {
        let (link, channels) = match &self.ears {
            Ears::None => return Ok(false),
            Ears::One { link, channels } => (link, channels),
            #[cfg(feature = "redis-cluster")]
            Ears::Cluster(ears) => return ears.listen(channel).await.map(|()| true),
        };
        let mut channels = channels.lock().await;
        let mut live = link.connected().await?;
        if channels.get(channel) == Some(&live.number) {
            return Ok(true);
        }
        let subscribed = match timeout(self.limits.command, live.connection.subscribe(channel)).await {
            Ok(answer) => answer.map_err(Trouble::Failed),
            Err(_) => Err(Trouble::NoAnswer),
        };
        match subscribed {
            Ok(()) => drop(channels.insert(channel.to_owned(), live.number)),
            Err(_) => link.give_up(live.number),
        }
        subscribed.map(|()| true)
    }
}

impl Room {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, name: &[u8]) -> Place {
        let mut places = self.places();
        let (count, notify) = places.entry(name.to_owned()).or_default();
        *count += 1;
        Place { room: Arc::clone(self), name: name.to_owned(), notify: Arc::clone(notify) }
    }

    fn hear(&self, heard: &PushInfo) {
        match (&heard.kind, &*heard.data) {
            (PushKind::Message | PushKind::SMessage, [_, Value::BulkString(name)]) => {
                if let Some((_, notify)) = self.places().get(name) {
                    notify.notify_waiters();
                }
            }
            // Nothing is heard until somebody has subscribed again, so everybody has to look.
            (PushKind::Disconnection, _) => self.places().values().for_each(|(_, notify)| notify.notify_waiters()),
            _ => {}
        }
    }
}

/// A place among the waiters, given up when it is dropped.
struct Place {
    room: Arc<Room>,
    name: Vec<u8>,
    notify: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.room.places();
        if let Some((count, _)) = places.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                places.remove(&self.name);
            }
        }
    }
}

impl RedisStore {
    /// Waits until the record is no longer running under `holder`, but not longer than `within`.
    pub(super) async fn wait(&self, key: &RecordKey, holder: Claimant, within: Duration) -> Result<(), StoreError> {
        let began = Instant::now();
        let name = self.space.name(key);
        let channel = self.channel(&name);
        let waiting = &self.shared.waiting;
        let place = waiting.room.enter(&name);
        loop {
            let mut woken = pin!(place.notify.notified());
            // From here on a message counts, whatever is found before anybody waits for it.
            woken.as_mut().enable();
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            let heard = timeout(left.min(AGAIN), waiting.listen(&channel)).await;
            if !self.runs_under(&name, holder).await? {
                return Ok(());
            }
            let again = if matches!(heard, Ok(Ok(true))) { AGAIN } else { AGAIN_UNHEARD };
            let left = within.saturating_sub(began.elapsed());
            let _ = timeout(left.min(jitter(again)), woken).await;
        }
    }

    /// Looks at the record, and leaves the mark that somebody waits for it.
    async fn runs_under(&self, name: &[u8], holder: Claimant) -> Result<bool, Trouble> {
        match self.line().script(&WATCH, name, &[&holder.to_bytes()], Again::Yes).await {
            Ok(Value::Int(runs)) => Ok(runs == 1),
            Ok(_) => Err(Trouble::Odd),
            Err(trouble) if trouble.refuses_writes() => {
                let mut command = redis::cmd("GETRANGE");
                command.arg(name).arg(0).arg(OWNED - 1);
                match self.line().command(&command, Again::Yes).await? {
                    Value::BulkString(head) => Ok(*head == owned_by(holder)),
                    _ => Err(Trouble::Odd),
                }
            }
            Err(trouble) => Err(trouble),
        }
    }
}
