//! For tests: a conformance suite for stores, a manual clock.
//!
//! - Who writes a store runs the [`suite`] against it.
//! - Who does not want to wait for a lease to lapse turns a [`ManualClock`].

mod clock;
pub mod suite;

pub use self::clock::ManualClock;
