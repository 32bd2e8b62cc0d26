//! The records in parts, each behind one lock.
//!
//! - `shards`: all parts together, and the frame of a call: lock, remove a few expired records, run the verb, unlock.
//! - `shard_guard`: a locked part. Every change of a record goes through `ShardGuard::update`, `insert` or `remove`,
//!   which keep index, order of expiry and counts in step.
//! - `shard`: the part itself: index, records, two orders of expiry, waiters.
//! - `index`: slots by the hash of their key. `expiries`: the order of expiry. `waiters`: who waits for the record in a slot.
//! - `hashed_key`: a key with its hash, which selects the part and the place in its index.

mod expiries;
mod hashed_key;
mod index;
mod shard;
mod shard_guard;
mod shards;
mod waiters;

pub(in crate::store::memory) use self::{hashed_key::HashedKey, shard_guard::ShardGuard, shards::Memory};
