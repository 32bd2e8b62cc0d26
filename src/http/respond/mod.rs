//! Answers that the layer itself gives: refusals, replays, and the advice to a client about when to send again.
//!
//! - `refuse`: the responses to refusals, replays and duplicates, and what a late finisher's client receives.
//! - `refused`: what the application's renderer sees.
//! - `times`: the times of an answer, as bytes and as header fields.
//! - `advice`: warnings in the log about the set-up of the layer, each once for each route.

mod advice;
mod refuse;
mod refused;
mod times;

pub use self::refused::RefusedRequest;
pub(super) use self::{
    advice::{Advice, Warned},
    times::Times,
};
