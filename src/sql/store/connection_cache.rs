//! Connections between two statements.
//!
//! Two kinds of pool are treated differently. Of the store's own pool all connections may be cached, so callers queue
//! for a permit here and not at the pool, where they would wait for connections that are cached. Of the application's
//! pool at most a quarter is cached, and each goes back after half a minute, so that the pool's hooks and limits take
//! effect.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use sqlx::{Database, Pool, pool::PoolConnection};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(1);

/// After this long a connection goes back to a pool of the application's in any case, so that the pool's hooks and its
/// `max_lifetime` take effect.
const LONGEST: Duration = Duration::from_secs(30);

/// Connections at hand between two statements.
///
/// A pool checks whether a connection is alive when it is taken and when it is given back, which takes longer than most
/// statements of a store. So a few connections are kept here as long as they are used. They go back to the pool when
/// they are unused, when the pool has no other left, and when it closes.
pub(in crate::sql) struct ConnectionCache<D: Database> {
    connections: Mutex<Connections<D>>,
    /// How many connections are kept at most.
    most: usize,
    /// Bounds the users if all connections of the pool may be kept here: callers that wait for one at the pool would
    /// wait in vain.
    turns: Option<Arc<Semaphore>>,
}

/// A connection between two statements.
pub(in crate::sql) struct AtHand<D: Database> {
    /// The connection. Dropped, it goes back to its pool.
    pub(in crate::sql) connection: PoolConnection<D>,
    /// When the pool returned it.
    since: Instant,
}

impl<D: Database> AtHand<D> {
    /// Notes that the pool has returned it now.
    pub(in crate::sql) fn new(connection: PoolConnection<D>) -> Self {
        Self { connection, since: Instant::now() }
    }
}

/// The cached connections, and the task that gives them back.
struct Connections<D: Database> {
    idle: Vec<(AtHand<D>, Instant)>,
    /// Whether a task that gives back unused connections is running.
    swept: bool,
    /// The runtime of the tasks that give connections back.
    runtime: Option<Handle>,
}

impl<D: Database> ConnectionCache<D> {
    /// Creates it for a pool of the store's own, or one that it shares with the application.
    pub(in crate::sql) fn new(pool: &Pool<D>, own: bool) -> Arc<Self> {
        let all = pool.options().get_max_connections() as usize;
        let connections = Connections { idle: Vec::new(), swept: false, runtime: None };
        let (most, turns) = if own { (all, Some(Arc::new(Semaphore::new(all)))) } else { (all / 4, None) };
        Arc::new(Self { connections: Mutex::new(connections), most, turns })
    }

    /// Waits for a turn, if there are turns, as long as the pool lets a caller wait for a connection.
    pub(in crate::sql) async fn turn(&self, pool: &Pool<D>) -> sqlx::Result<Option<SemaphorePermit<'_>>> {
        let Some(turns) = &self.turns else { return Ok(None) };
        match timeout(pool.options().get_acquire_timeout(), turns.acquire()).await {
            Ok(turn) => Ok(turn.ok()),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// Returns the permits of the store's own pool.
    pub(in crate::sql) fn turns(&self) -> Option<&Arc<Semaphore>> {
        self.turns.as_ref()
    }

    /// Returns whether only the store uses the pool.
    pub(in crate::sql) fn is_own(&self) -> bool {
        self.turns.is_some()
    }

    /// Takes the connection that was used last.
    pub(in crate::sql) fn take(&self) -> Option<AtHand<D>> {
        self.lock().idle.pop().map(|(connection, _)| connection)
    }

    /// Keeps a connection that has just answered, or gives it back.
    pub(in crate::sql) fn keep(self: &Arc<Self>, pool: &Pool<D>, connection: AtHand<D>) {
        let exhausted = || pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections();
        let give_back = !self.is_own() && (exhausted() || connection.since.elapsed() >= LONGEST);
        if pool.is_closed() || give_back {
            return;
        }
        let mut connections = self.lock();
        if connections.idle.len() < self.most {
            connections.idle.push((connection, Instant::now()));
            if !connections.swept {
                connections.swept = true;
                connections.runtime = Some(Handle::current());
                tokio::spawn(sweep(Arc::downgrade(self), pool.clone()));
            }
        }
    }

    /// Gives all connections back: one was found to be broken, and the others may be too.
    pub(in crate::sql) fn give_up(&self) {
        let idle = std::mem::take(&mut self.lock().idle);
        drop(idle);
    }

    /// Gives back unused connections; returns whether any are left.
    fn sweep(&self, closed: bool) -> bool {
        let mut connections = self.lock();
        let old = connections.idle.extract_if(.., |(_, used)| closed || used.elapsed() >= IDLE).collect::<Vec<_>>();
        connections.swept = !connections.idle.is_empty();
        let left = connections.swept;
        drop(connections);
        drop(old);
        left
    }

    fn lock(&self) -> MutexGuard<'_, Connections<D>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Database> Drop for ConnectionCache<D> {
    fn drop(&mut self) {
        let connections = self.connections.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A store may be dropped outside of a runtime, or after its runtime has shut down.
        let _inside = connections.runtime.as_ref().map(Handle::enter);
        connections.idle.clear();
    }
}

/// Gives back connections that were not used for a second, until none is left.
async fn sweep<D: Database>(held: Weak<ConnectionCache<D>>, pool: Pool<D>) {
    loop {
        let closed = timeout(IDLE, pool.close_event()).await.is_ok();
        let left = held.upgrade().is_some_and(|held| held.sweep(closed));
        if !left {
            return;
        }
    }
}
