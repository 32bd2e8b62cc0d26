//! One part of the records, behind one lock.
//!
//! - `shards`: all parts together, and the frame of a call: lock, remove a few expired records, run the verb, unlock.
//! - `turn`: a locked part. Every change of a record goes through `Turn::change`, `insert` or `remove`, which keep
//!   index, wheels and counts in step.
//! - `table`: the part itself: index, slab, two wheels, waiters.
//! - `slab`: slots for entries. A slot is a number of 32 bits and stays the same for the life of a record, so index,
//!   wheels and cursors refer to it.
//! - `wheel`: the order of expiry.

mod shards;
mod slab;
mod table;
mod turn;
mod wheel;

pub(in crate::store::memory) use self::{
    shards::{Memory, Name},
    table::Shard,
    turn::Turn,
};
