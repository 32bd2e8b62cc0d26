//! One part of the records, behind one lock.

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
