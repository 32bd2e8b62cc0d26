//! What was begun and never ended, found and brought to an end.
//!
//! A runner that dies leaves its record running until the lease lapses, and abandoned from then on. By default the next
//! try runs; where there is none, and at most once, somebody has to find out how it ended. [`Reconciler`] looks for such
//! records and asks the application.

mod abandoned;
mod case;
mod reconciler;
mod sweep;

pub use self::{
    abandoned::{Abandoned, Resolution},
    reconciler::Reconciler,
    sweep::Sweep,
};
