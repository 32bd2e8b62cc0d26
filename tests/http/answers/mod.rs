//! What becomes of answers and bodies: what is kept, what comes back, and what goes through as it comes.

mod fields;
mod kept;
pub(crate) mod lab;
mod limits;
mod policies;
#[cfg(feature = "json")]
mod refusals;
mod requests;
mod streams;
#[cfg(feature = "json")]
mod verify;
#[cfg(feature = "testing")]
mod wire_fields;
