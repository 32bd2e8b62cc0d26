//! Tokens that the server issues, each good for one operation.
//!
//! [`Tokens`] is the builder, [`rule`] decides what a token must be good for and how it is made, [`issuer`] issues
//! inside a handler, [`signer`] replaces the stored record by a signature.
//!
//! - `rule`: what a layer accepts; also the one place that issues a token and derives its successor.
//! - `issuer`: the handle in a handler, and the flag that marks an answer with a token in it as `no-store`.
//! - `signer`: HMAC over purpose, principal, expiry and nonce, or nothing without the feature. `base64url`: the text of
//!   a token.
//!
//! A token is a secret: `Debug` shows none, the store has a digest, and a signed one is compared in constant time.

mod base64url;
mod issuer;
mod rule;
mod signer;
mod tokens;

use self::signer::Signer;
#[cfg(feature = "signed-tokens")]
pub use self::signer::SigningKeys;
#[cfg(feature = "signed-tokens")]
use self::signer::WallClock;
pub use self::{
    issuer::{IssueError, TokenIssuer},
    rule::Token,
    tokens::Tokens,
};
pub(crate) use self::{
    issuer::{IssuedFlag, IssuerContext},
    rule::{Issuer, PresentedToken, TokenRule},
};
