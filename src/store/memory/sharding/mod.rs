//! The records in parts, each behind one lock.
//!
//! - `shards`: all parts together, and the frame of a call: lock, remove a few expired records, run the verb, unlock.
//! - `shard_guard`: a locked part. Every change of a record goes through `ShardGuard::update`, `insert` or `remove`,
//!   which keep index, wheels and counts in step.
//! - `shard`: the part itself: index, slab, two wheels, waiters.
//! - `slab`: slots for entries. A slot is a number of 32 bits and stays the same for the life of a record, so index,
//!   wheels and cursors refer to it.
//! - `wheel`: the order of expiry. `waiters`: who waits for the record in a slot.
//! - `hashed_key`: a key with its hash, which selects the part and the place in its index.

mod hashed_key;
mod shard;
mod shard_guard;
mod shards;
mod slab;
mod waiters;
mod wheel;

pub(in crate::store::memory) use self::{hashed_key::HashedKey, shard_guard::ShardGuard, shards::Memory};
