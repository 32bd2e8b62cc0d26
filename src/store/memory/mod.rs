//! [`MemoryStore`]: records in shards, each with a lock, an index, blocks of bytes and an order of expiry.
//!
//! # In reading order
//!
//! 1. `mod`: the store; each verb computes the shard of its key, locks it, and runs the verb.
//! 2. `sharding/shards` (`Memory`): all shards, the clock, the namespaces; `run` and `run_with_capacity` are the frames of a call.
//! 3. `sharding/shard_guard`: a locked shard for the length of a call, and what has to wait until it is unlocked.
//! 4. `verbs`: the verbs on a locked shard. Decisions are those of `value::rules`.
//! 5. `record`: records in few bytes, and how a verb changes them. `storage`: the blocks and slots they are in.
//! 6. `sharding/shard`, `sharding/index`, `sharding/expiries`: the place of a key, and when its record expires.
//! 7. `capacity`, `full`, `shares`: counts of records, bytes and shares, with their bounds.
//! 8. `watch`: waiting for a record. `admin`: the operator's verbs. `dropped`: the warning of a store that is
//!    dropped too early.
//!
//! # Who locks what
//!
//! - Each shard has a mutex. A call locks one shard at a time; it tries to lock a second one, without waiting, only
//!   after the first is unlocked. `Debug` locks all of them, in their order.
//! - The counts in `Capacity` are atomics; what a shard has taken of them in advance (`Room`) is part of the shard.
//! - `Shares` has mutexes of its own, taken while a shard is locked; no code locks a shard while it holds one of them.
//! - The map of namespaces has a mutex, held for one lookup.
//! - No code of the application runs under a lock: destructors of payloads and wakers are collected in `Deferred` and run
//!   once the shard is unlocked. So a lock cannot be poisoned half-way, and a poisoned one is used as it is.
//!
//! # What always holds
//!
//! - A verb takes effect when the method is called. There is no await inside a verb, and no background task.
//! - A record has one slot, one block, one place in the index, and one valid item in one order of expiry, whose time is
//!   not later than its expiry.
//! - Expiry is checked on every read; removal is only housekeeping.
//! - The time of a shard never goes back, whatever the order in which threads read the clock.
//!
//! # A claim from start to end
//!
//! 1. `MemoryStore::claim` hashes namespace and key; the hash selects the shard and the place in its index.
//! 2. `Memory::run_with_capacity` locks the shard (`ShardGuard::new`), and removes up to 64 expired records.
//! 3. `ShardGuard::claim` looks the key up. `judge` decides by the head of the record, or by its absence.
//! 4. A grant on a free key reserves room (`Capacity::reserve`) and inserts a record: block, slot, index, expiry. A grant
//!    on an existing record reserves what it grows by, and replaces it in its slot.
//! 5. If there is no room, the shard is unlocked, room is made, and the verb runs again from step 2.
//! 6. The shard is unlocked. Then waiters are woken, and what the claim replaced is dropped.
//!
//! The answer is a future that is ready: an `await` on it does not yield, and dropping it undoes nothing.
//!
//! # Why shards, blocks and queues
//!
//! - Shards let threads work side by side. 64 are enough for any machine, and few enough that a walk over all of them
//!   is cheap.
//! - A record is one block of bytes: a look at it touches few lines of memory, and what claims and settlements need is
//!   taken from blocks that the shard has, not from the allocator. A slot is a number that stays the same when a longer
//!   record moves to another block, so that index, expiry, waiters and cursors need not know.
//! - Records of one route expire in the order in which they came, so a queue finds the next expired one without
//!   searching, and a record that is removed earlier leaves an item behind that is skipped. A heap would cost a logarithm
//!   for each renewal of each lease, and a wheel links records to neighbours elsewhere in memory.
//! - No prefetching while the fingerprint is hashed: it needs `unsafe`.

mod admin;
mod builder;
mod capacity;
mod clock;
mod dropped;
mod full;
mod record;
mod sharding;
mod shares;
mod storage;
#[cfg(test)]
mod tests;
mod verbs;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use crate::value::{Behalf, Claim, Claimant, Issue, RecordKey, Release, Settlement};

use super::{Claimed, Finished, Issued, Renewed, Store, StoreFuture};

use self::{
    full::Full,
    sharding::{HashedKey, Memory},
    watch::{SlotWatch, wait},
};

pub use self::{builder::MemoryStoreBuilder, clock::Clock};

/// Keeps records in this process's memory: for a service that runs as one process, and for tests.
///
/// Every clone is a handle on the same records. Calls return at once, without I/O and without a background task; they
/// take effect when the method is called, not when its future is polled.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{MemoryStore, store::{Claim, Claimed, Origin, RecordKey, Settlement, Store}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let key = RecordKey::new("/orders", Some("ann"), "7f0c")?;
/// let (lease, day) = (Duration::from_secs(30), Duration::from_secs(86_400));
///
/// let first = Claim::new(lease, day);
/// assert!(matches!(store.claim(&key, &first).await?, Claimed::Granted(_)));
/// store.settle(&key, &Settlement::new(first.claimant, Some("paid".into()), day)).await?;
///
/// let again = store.claim(&key, &Claim::new(lease, day)).await?;
/// assert_eq!(again, Claimed::Settled(Some("paid".into()), Origin::NONE));
/// # Ok(())
/// # }
/// ```
///
/// # What it does not do
///
/// - **One process only.** Two instances of a service do not see each other's records: the same key runs once in each
///   of them.
/// - **Gone at restart.** A retry after a deploy runs again. If a second run costs money, use a store that outlives the
///   process. If the last handle is dropped while operations run, one event of `tracing` is emitted at level WARN.
///
/// # Room
///
/// A store holds at most [`capacity`](MemoryStoreBuilder::capacity) records, a million by default, which keep at most
/// [`max_bytes`](MemoryStoreBuilder::max_bytes) of keys, answers and notes, 256 MiB by default. No record that is
/// issued, running or settled is ever dropped before its time:
///
/// - A store that is full of such records refuses new keys with [`StoreErrorKind::Full`](super::StoreErrorKind::Full).
/// - An answer for which not enough bytes are left is refused with
///   [`StoreErrorKind::TooLarge`](super::StoreErrorKind::TooLarge), and the layers leave a tombstone in its place.
/// - Released records, which keep only how often a key was tried and by whom, are removed to make room for others, the
///   oldest first.
/// - Tokens that nobody has claimed hold at most half of the records and half of the bytes, so that a flood of them
///   leaves room for running requests.
/// - With [`share_per_scope`](MemoryStoreBuilder::share_per_scope) no scope and no principal holds more records than
///   its share.
///
/// Plan for *`max_bytes` + `capacity` × about 130 bytes*, which is the fixed size of a record. An answer of more than 4
/// KiB is kept in the buffer that it came in: if it is a small part of a large buffer, the whole buffer stays in
/// memory, but only the part is counted.
///
/// # Time
///
/// A record that has expired is absent from that millisecond on. Its memory is freed a little later, by the calls that
/// follow, each of which removes a bounded number of such records. Index and slots, about 16
/// bytes for each record that were held at once, keep their size until their part of the store is empty. A store that is never called keeps its
/// memory; [`StoreAdmin::purge`](crate::store::StoreAdmin::purge) frees it. Durations have no upper limit: what would
/// expire after the year 10889 expires then.
#[derive(Clone)]
pub struct MemoryStore {
    memory: Arc<Memory>,
    namespace: u32,
}

impl MemoryStore {
    /// Creates a store of its own, for up to a million records and 256 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, for other limits or another clock.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::new()
    }

    /// Returns a handle on the same memory, whose keys never collide with those of this one or of any other namespace.
    ///
    /// The handle lists and counts its own records only; the capacity is shared by all. A namespace within a namespace
    /// differs from one of the same name next to it. Names stay in memory, so use few of them, and none per user.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_idempotency::{MemoryStore, store::{Claim, Claimed, RecordKey, Store, StoreAdmin}};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryStore::new();
    /// let (orders, refunds) = (store.namespace("orders"), store.namespace("refunds"));
    /// let key = RecordKey::new("/pay", None, "7f0c")?;
    /// let minute = Duration::from_secs(60);
    ///
    /// assert!(matches!(orders.claim(&key, &Claim::new(minute, minute)).await?, Claimed::Granted(_)));
    /// assert!(matches!(refunds.claim(&key, &Claim::new(minute, minute)).await?, Claimed::Granted(_)));
    /// assert_eq!(orders.stats().await?.running, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn namespace(&self, name: &str) -> Self {
        Self { memory: Arc::clone(&self.memory), namespace: self.memory.namespace(self.namespace, name) }
    }

    fn hashed<'a>(&self, key: &'a RecordKey) -> HashedKey<'a> {
        self.memory.hashed(self.namespace, key)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, bytes) = self.memory.used();
        f.debug_struct("MemoryStore")
            .field("records", &records)
            .field("capacity", &self.memory.capacity.capacity())
            .field("bytes", &bytes)
            .field("max_bytes", &self.memory.capacity.max_bytes())
            .finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    fn is_immediate(&self) -> bool {
        true
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        let hashed = self.hashed(key);
        StoreFuture::ready(
            self.memory.run_with_capacity(hashed.shard, |guard| guard.issue(&hashed, issue)).map_err(Full::of_a_key),
        )
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        let hashed = self.hashed(key);
        StoreFuture::ready(
            self.memory.run_with_capacity(hashed.shard, |guard| guard.claim(&hashed, claim)).map_err(Full::of_a_key),
        )
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        let hashed = self.hashed(key);
        StoreFuture::ready(Ok(self.memory.run(hashed.shard, self.memory.now(), |guard| guard.renew(&hashed, claim))))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        let hashed = self.hashed(key);
        StoreFuture::ready(
            self.memory
                .run_with_capacity(hashed.shard, |guard| guard.settle(&hashed, Behalf::Own, settlement))
                .map_err(Full::of_an_answer),
        )
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        let hashed = self.hashed(key);
        StoreFuture::ready(Ok(self
            .memory
            .run(hashed.shard, self.memory.now(), |guard| guard.release(&hashed, Behalf::Own, release))))
    }

    /// # Panics
    ///
    /// Panics if it has to wait outside of a Tokio runtime whose time driver is enabled.
    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        let hashed = self.hashed(key);
        match SlotWatch::new(&self.memory, &hashed, holder) {
            Some(watch) if !within.is_zero() => StoreFuture::new(wait(&self.memory, hashed, holder, within, watch)),
            _ => StoreFuture::ready(Ok(())),
        }
    }
}
