//! Bytes in blocks and slots, with no knowledge of records.
//!
//! - `blocks`: blocks of bytes in size classes, which a shard keeps and uses again.
//! - `slots`: numbers that stay the same while a block moves to another class.

mod blocks;
mod slots;

pub(super) use self::{
    blocks::{Block, Blocks, LARGEST},
    slots::Slots,
};
