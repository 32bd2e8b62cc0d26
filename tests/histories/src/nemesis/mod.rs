//! Faults: which, on whom, when and for how long.
//!
//! - `schedule`: drawn from the seed
//! - `play`: done

mod play;
mod schedule;

pub(crate) use self::{
    play::{Stage, play},
    schedule::{Fault, Planned, Schedule, Track},
};
