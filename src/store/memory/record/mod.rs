//! Records as a memory store keeps them, each in one block of bytes.
//!
//! - `draft`: a record that is to be written.
//! - `records`: the records of a shard, in blocks, and how each verb changes them.
//! - `view`: a record as the rules and its readers see it.
//! - `head`, `text`: the layout of a block: fields that every record has; key, optional fields and payload.
//! - `extra`: the fields that few records have, apart from the block.
//! - `moment`, `weight`, `scoped`: times in six bytes; how a record counts, to whose share, and what a change means.
//!
//! The layout is chosen for the size of a million records: one block for all of a record, with the room of a block
//! close to what it holds. A replay copies a short payload, which costs less than counting its owners.

mod draft;
mod extra;
mod head;
mod moment;
mod records;
mod scoped;
#[cfg(test)]
mod tests;
mod text;
mod view;
mod weight;

pub(super) use self::{
    draft::RecordDraft,
    extra::Extra,
    moment::{FOREVER, Moment, later},
    records::Records,
    scoped::Scoped,
    view::RecordView,
    weight::{RecordChange, Weight},
};
