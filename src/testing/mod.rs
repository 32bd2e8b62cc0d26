//! For tests: a conformance suite for stores, a store with scripted faults, a manual clock.
//!
//! - To test a store of your own, run the [`suite`] against it.
//! - To see how routes behave when the store fails, put a [`FaultyStore`] under the layer.
//! - To let a lease lapse without waiting, advance a [`ManualClock`].

mod clock;
mod faulty;
pub mod suite;

pub use self::{
    clock::ManualClock,
    faulty::{Fault, Faults, FaultyStore, Gate},
};
