//! [`RedisStore`]: one script or command for each verb, on one server, a cluster, or what Sentinel watches.
//!
//! # In reading order
//!
//! 1. `mod`: the store and its verbs. `builder`: how it is connected.
//! 2. `key_prefix`: the names of records, channels and drafts. `record`: the layout of a record; `record/new_record` writes one,
//!    `record/parts` is what follows the payload.
//! 3. `claim`: issue, claim, takeover. `finish`: renew, settle, release; `reply`: what their scripts answer.
//!    `compared`: settle and release as one plain command, where the server has one that compares. `settle_large`: settling
//!    an answer that no script should copy. `command`: how a command is put together.
//! 4. `scripts`, `lua/`: the steps that have to compare before they write, one file each, with a common prelude.
//! 5. `connection`: how a command gets an answer: one server (`managed`), a cluster, sentinels, TLS; `transport` is the common
//!    interface.
//! 6. `notifications`: who waits for a running record, and how the end of its claim is noticed.
//! 7. `admin`: listing, counting, reconciling. `error`: what the server's errors mean.
//!
//! # A record
//!
//! One string for each key, with the expiry of Redis. There is no index and no second key: what a step touches is in
//! one slot.
//!
//! ```text
//! at    bytes   what
//! 0     1       version, now 2
//! 1     1       state: 0 issued, 1 running, 2 settled, 3 released
//! 2     16      claimant
//! 18    4       attempt
//! 22    1       1 if a request waits for the end of the claim
//! 23    1       flags: at most once, takeover, caller is new, payload
//! 24    1       which parts follow the payload
//! 25    33      scheme and digest of the fingerprint
//! 58    17      caller
//! 75    4       number of the secret
//! 79    8       created: ms since 1970; below 2^40, ms before the last change
//! 87    8       lease in ms
//! 95    8       span: the life of the record from its last change, in ms
//! 103   4       length of the payload
//! 107   …       payload, then token, origin, trace and note, as byte 24 says
//! ```
//!
//! A plain command of Redis does not return the time. So a record has its *span*, and the age of its last change is the
//! span less `PTTL`. That is how a lease is judged by the server's clock in a plain `GET`.
//!
//! # What always holds
//!
//! - A claim of a free key and a replay are one command each (`SET NX GET`). Whatever compares runs as one script, or as one
//!   command that compares the whole record (`SET IFEQ`): if the bytes differ, the script decides.
//! - A command may be sent twice, since the claimant is compared: a repeated claim, settlement or release is
//!   recognised. The two exceptions, issue and forget, are marked `RetryOnDisconnect::No`.
//! - Leases are never compared with a clock of this process.
//! - A record that cannot be read is an error or a conflict, never a free key.
//!
//! # Who locks what
//!
//! Nothing is locked across an await except two asynchronous mutexes: the one of a connection that is being opened
//! (`managed/dial`), and the one of the subscriptions (`notifications`). Both are held by a task or a call that ends within a
//! bounded time.
//!
//! # What a verb sends
//!
//! | verb | command | round trips |
//! | --- | --- | --- |
//! | issue | `SET NX` | 1 |
//! | claim, free key | `SET NX GET` | 1 |
//! | claim, settled | `SET NX GET`, which fails and returns the record | 1 |
//! | claim, running | the same, then `read.lua` for the times | 2 |
//! | claim, released or issued | the read, then `takeover.lua` | 2 |
//! | claim, lapsed | the same, then `read.lua`, `takeover.lua` | 3 |
//! | renew | `renew.lua` | 1 |
//! | settle, release of a claim of a free key | `SET IFEQ`, if the server has it | 1 |
//! | the same, if the record has changed | that, then as below | 2 |
//! | settle | `settle.lua`; from 2 KiB on a draft and `settle_draft.lua` in one batch | 1 |
//! | release | `release.lua` | 1 |
//! | undo of a claim of a free key | `DELIFEQ` or `DELEX IFEQ`, if the server has one | 1 |
//! | changed | `watch.lua`, then a message | 1, and a look now and then |
//! | inspect | `read.lua` | 1 |
//! | forget | `forget.lua` | 1 |
//! | list, stats | `SCAN` and a batch or two of reads, up to sixteen times a page | 2 or 3 each time |

mod admin;
mod builder;
mod claim;
mod command;
mod compared;
mod connection;
mod error;
mod finish;
mod key_prefix;
mod notifications;
mod record;
mod reply;
mod scripts;
mod settle_large;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use crate::value::{Behalf, Claim, Claimant, Issue, RecordKey, Release, Settlement, StoreError};

use super::{Claimed, Finished, Issued, Renewed, Store, StoreFuture};

use self::{
    command::Argument,
    compared::{Abilities, OwnClaims},
    connection::Transport,
    key_prefix::KeyPrefix,
    notifications::Notifications,
};

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
    shared: Arc<RedisShared>,
    prefix: KeyPrefix,
}

/// What all handles of a store share.
struct RedisShared {
    /// How commands reach the server.
    transport: Transport,
    /// Who waits for which record.
    notifications: Notifications,
    /// Which plain commands of the server compare.
    abilities: Abilities,
    /// The claims whose records this process knows byte by byte.
    own_claims: OwnClaims,
    /// The address, for `Debug`; it has neither user nor password.
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
        Self { shared: Arc::clone(&self.shared), prefix: self.prefix.within(name) }
    }

    /// Returns how commands reach the server.
    fn transport(&self) -> &Transport {
        &self.shared.transport
    }

    /// Returns the channel on which the end of a record's claim is published.
    fn channel(&self, name: Argument<'_>) -> Cow<'_, [u8]> {
        if self.transport().is_cluster() {
            self.prefix.channel_beside(&name.to_vec()).into()
        } else {
            self.prefix.channel().into()
        }
    }
}

/// Omits user and password.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("server", &self.shared.address)
            .field("namespace", &self.prefix.text())
            .finish_non_exhaustive()
    }
}

impl Store for RedisStore {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        StoreFuture::new(self.issue_record(key, issue))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        StoreFuture::new(self.try_claim(key, claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        StoreFuture::new(self.renew_claim(key, claim))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.settle_record(key, Behalf::Own, settlement))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.release_record(key, Behalf::Own, release))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::new(self.wait(key, holder, within))
    }
}
