//! What makes and checks signed tokens: [`hmac`], or nothing without the feature `signed-tokens`.

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
