//! Answers that the layer itself gives: refusals, replays, and the advice to a client about when to send again.
//!
//! - `refuse`: the responses to refusals, replays and duplicates.
//! - `drain`: the rest of a refused body is read first.
//! - `refused`: what the application's renderer sees.
//! - `times`: the times of an answer, as bytes and as header fields.
//! - `advice`: warnings in the log about the set-up of the layer, each once for each route.
//!
//! | the request finds | response | made by |
//! | --- | --- | --- |
//! | nothing to claim with: no key, no scope, a bad body | 400, 403, 408, 413, 500 | `refusal` |
//! | a running record | 409 with `Retry-After`, or the application's own | `running` |
//! | a settled record | the kept answer, 409, or the application's own | `duplicate` |
//! | a tombstone | 409 `response-not-retained` | `duplicate` |
//! | another content or caller | 422 | `refusal` |
//! | a store that fails or is full | 503, 429 | `refusal` |
//! | its own claim lost at the end | as the record says | `duplicate`, `running` |
//!
//! A response of this folder has never passed through the handler, and nothing of it is kept, except a refusal that is
//! kept in place of an answer (`Exchange::kept_refusal`).

mod advice;
mod drain;
mod refuse;
mod refused;
mod times;

pub use self::refused::RefusedRequest;
pub(super) use self::{
    advice::{Advice, Warned},
    drain::BoundedDrain,
    times::Times,
};
