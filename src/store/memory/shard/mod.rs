//! One part of the records, behind one lock.

mod entry;
mod shards;
mod slab;
mod table;
mod text;
mod turn;
mod wheel;

pub(in crate::store::memory) use self::{
    entry::Entry,
    shards::{Memory, Name},
    table::Shard,
    turn::Turn,
};
