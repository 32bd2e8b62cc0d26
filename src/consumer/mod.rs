//! Messages that a broker delivers at least once, each handled as one operation.
//!
//! [`ConsumerLayer`](crate::ConsumerLayer) is put around any service of messages. The outcome of a message defines what
//! to do with its delivery: [`Consumed::action`]. This module contains no client of a broker.

// For maintainers, in reading order: `layer` and `construct` build the settings (`settings`, with the key in `key`),
// `service` claims a message and runs the inner service as a job of the engine, `outcome` maps what comes of it to a
// `Consumed` (`consumed`), `observe` is for a switch that is not on, `future` is the response future. The only lock is that
// of a message that is only observed, held for one take.

mod construct;
mod consumed;
mod future;
mod key;
pub(crate) mod layer;
mod observe;
mod outcome;
mod service;
mod setters;
mod settings;

pub use self::{
    consumed::{Action, Consumed},
    future::ConsumerFuture,
    key::IntoKey,
    service::Consumer,
};
