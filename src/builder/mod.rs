//! The setters that several builders have, each written once.
//!
//! A builder lists the setters that it has, as in `policy_setters! { Policy => policy, retention, lease }`. What stands
//! above a name is added to its documentation: an example, or what is special about this builder. The builder has the
//! functions that the setters call: `apply` for a policy, and `with_engine` for the engine.

mod engine;
mod policy;

pub(crate) use self::{
    engine::{engine_setter, engine_setters},
    policy::{policy_setter, policy_setters},
};
