//! For tests: a conformance suite for stores, a store with scripted faults, a manual clock.
//!
//! - Who writes a store runs the [`suite`] against it.
//! - Who wants to see how their routes behave when the store does not puts a [`FaultyStore`] under the layer.
//! - Who does not want to wait for a lease to lapse turns a [`ManualClock`].

mod clock;
mod faulty;
pub mod suite;

pub use self::{
    clock::ManualClock,
    faulty::{Fault, Faults, FaultyStore, Gate},
};
