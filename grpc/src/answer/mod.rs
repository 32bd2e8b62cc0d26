//! The handler's side of the core: it reads an answer up to its trailers, so that the core knows how the call ended
//! before it decides what is kept.
//!
//! - `handler`: the service that the core calls.
//! - `future`: waits for the handler, then for the end of its answer.
//! - `reading`: an answer while it is read. It is a message and trailers, or a stream.
//! - `body`: the body of an answer on its way to the core.

mod body;
mod future;
mod handler;
mod reading;

pub use self::{body::AnswerBody, future::HandlerFuture, handler::Handler};
