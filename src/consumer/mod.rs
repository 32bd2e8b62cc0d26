//! Messages that a broker delivers at least once, each handled as one operation.
//!
//! [`ConsumerLayer`] is put around any service of messages. What comes of a message says what to do with its delivery:
//! [`Consumed::action`]. No broker is in here.

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
