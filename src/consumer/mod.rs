//! Messages that a broker delivers at least once, each handled as one operation.
//!
//! [`ConsumerLayer`] is put around any service of messages. The outcome of a message defines what to do with its
//! delivery: [`Consumed::action`]. This module contains no client of a broker.

mod construct;
mod consumed;
mod future;
mod key;
mod layer;
mod service;
mod settings;

pub use self::{
    consumed::{Action, Consumed},
    future::ConsumerFuture,
    key::IntoKey,
    layer::ConsumerLayer,
    service::Consumer,
};
