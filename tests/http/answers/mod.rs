//! What becomes of answers and bodies: what is kept, what comes back, and what goes through as it comes.

#[cfg(feature = "testing")]
mod added_fields;
pub(crate) mod fixture;
mod keys_of_bodies;
mod limits;
mod policies;
#[cfg(feature = "json")]
mod refusals;
mod replayed_fields;
mod replays;
mod requests;
mod streams;
#[cfg(feature = "json")]
mod verify;
