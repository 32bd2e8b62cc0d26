mod faults;
mod gate;
mod store;

pub use self::{
    faults::{Fault, Faults},
    gate::Gate,
    store::FaultyStore,
};
