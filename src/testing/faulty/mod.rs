//! A store that fails as a test scripts it: `store` wraps another store, `faults` is the script, `gate` holds a call
//! until the test opens it. A fault is injected before the inner store is called, or after it, when only the answer is
//! lost.

mod faults;
mod gate;
mod store;

pub use self::{
    faults::{Fault, Faults},
    gate::Gate,
    store::FaultyStore,
};
