//! Answers that the layer itself gives: refusals, replays, and the advice to a client about when to send again.

mod advice;
mod refuse;
mod refused;
mod times;

pub use self::refused::RefusedRequest;
pub(super) use self::{
    advice::{Advice, Warned},
    times::Times,
};
