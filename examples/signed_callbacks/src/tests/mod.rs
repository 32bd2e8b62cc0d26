//! Callbacks signed byte for byte as the platforms' documents say.
//!
//! `private_key.pem` was made for these tests and is not a secret.

mod deliveries;
mod forgeries;
mod published;
mod senders;
mod test_shop;
