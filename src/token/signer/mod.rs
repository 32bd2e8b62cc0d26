//! What makes and checks signed tokens: [`hmac`], or nothing without the feature `signed-tokens`.
//!
//! - `keys`: the secrets and their replacement in three steps, the layout of a token, its MAC. `hmac`: the clock by which
//!   a token expires, and how long a spent one is remembered.
//! - `absent`: the same names without the feature, with a type that has no value, so that the callers have no `cfg`.

#[cfg(not(feature = "signed-tokens"))]
mod absent;
#[cfg(feature = "signed-tokens")]
mod hmac;
#[cfg(feature = "signed-tokens")]
mod keys;

#[cfg(not(feature = "signed-tokens"))]
pub(super) use self::absent::Signer;
#[cfg(feature = "signed-tokens")]
pub(super) use self::hmac::{Signer, WallClock};
#[cfg(feature = "signed-tokens")]
pub use self::keys::SigningKeys;
