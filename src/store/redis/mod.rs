//! [`RedisStore`]: one script or command for each verb, on one server, a cluster, or what Sentinel watches.

mod admin;
mod builder;
mod claim;
mod connection;
mod error;
mod finish;
mod large;
mod names;
mod record;
mod scripts;
mod waiting;

use std::{fmt, sync::Arc, time::Duration};

use crate::value::{Behalf, Claim, Claimant, Issue, RecordKey, Release, Settlement, StoreError};

use super::{Claimed, Finished, Issued, Renewed, Store, StoreFuture};

use self::{connection::Line, names::Space, waiting::Waiting};

pub use self::builder::RedisStoreBuilder;

/// Keeps records in Redis, 7.0 or newer, or Valkey: for a service that runs as several processes.
///
/// Every clone is a handle on the same connection. A claim takes one round trip to the server, and so does each of the
/// other methods; a claim on a record that is running or was released takes a second one, and on one that has lapsed a
/// third.
///
/// ```no_run
/// use tower_idempotency::{IdempotencyLayer, RedisStore};
///
/// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::connect("redis://127.0.0.1:6379").await?.namespace("shop");
/// let layer = IdempotencyLayer::new(store);
/// # Ok(())
/// # }
/// ```
///
/// # What it promises
///
/// - One server decides, a step at a time: of two claims on one key, one is granted, wherever they come from.
/// - Leases are judged by the server's clock alone.
/// - If the server accepts no writes (out of memory, a replica), kept answers are still replayed.
/// - A connection that breaks is opened anew by the next call, and the call is sent once more. That is safe: the server
///   distinguishes the claimant's own earlier call from somebody else's. A connection on which nothing is answered for
///   a quarter of a second is replaced.
///
/// # What it does not
///
/// - **Redis may lose writes.** What was written in the last second before a crash may be lost (`appendfsync
///   everysec`), and with it a claim or an answer: the next try runs. Replicas lag a little, so a failover loses some
///   writes too.
/// - **Redis may evict.** Every record has an expiry, so every `maxmemory-policy` except `noeviction` may drop one
///   before its time. A WARN is emitted if the store connects to such a server, and if the policy is set later.
/// - **The clock is the server's.** If it jumps, leases and retention jump with it.
///
/// See [`guide::redis`](crate::guide::redis) for memory, sizing and access rules.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
    space: Space,
}

struct Shared {
    line: Line,
    waiting: Waiting,
    address: Box<str>,
}

impl RedisStore {
    /// Connects to the server of a URL; see [`RedisStoreBuilder::connect`].
    ///
    /// # Errors
    ///
    /// Returns an error under the conditions that [`RedisStoreBuilder::connect`] lists.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Returns a builder, for other limits, or for a client or a connection of the application's.
    pub fn builder() -> RedisStoreBuilder {
        RedisStoreBuilder::new()
    }

    /// Returns a handle on the same connection, whose keys never collide with those of this one or of any other
    /// namespace.
    ///
    /// The handle lists and counts its own records only. A namespace within a namespace differs from one of the same
    /// name next to it. Use few names, and none per user: once a request has waited in a namespace, its channel stays
    /// subscribed.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), space: self.space.within(name) }
    }

    fn line(&self) -> &Line {
        &self.shared.line
    }

    /// Returns the channel on which the end of a record's claim is published.
    fn channel(&self, name: &[u8]) -> Vec<u8> {
        if self.line().is_cluster() { self.space.channel_beside(name) } else { self.space.channel() }
    }
}

/// Omits user and password.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("server", &self.shared.address)
            .field("namespace", &self.space.text())
            .finish_non_exhaustive()
    }
}

impl Store for RedisStore {
    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        StoreFuture::new(self.put_issued(key, issue))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        StoreFuture::new(self.try_claim(key, claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        StoreFuture::new(self.prolong(key, claim))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.end_with_answer(key, Behalf::Own, settlement))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.end_without_answer(key, Behalf::Own, release))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::new(self.wait(key, holder, within))
    }
}
