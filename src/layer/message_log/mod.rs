//! [`MessageLogLayer`]: writes what comes in to a message log, before anything else sees it.
//!
//! - `layer`: the builder, whose values are in `settings`. `message`: what of a request is written. `service`: the order of the steps.
//!
//! The layer stands outside of the idempotency layers and knows nothing of them: a duplicate and a refused request are
//! messages like any other.

mod layer;
mod message;
mod service;
mod settings;

pub use self::{
    layer::MessageLogLayer,
    message::MessageId,
    service::{MessageLogFuture, MessageLogService},
};
