//! Tokens that the server issues, each good for one operation.
//!
//! [`Tokens`] is the builder, [`rule`] decides what a token must be good for and how it is made, [`issuer`] issues
//! inside a handler, [`signer`] replaces the stored record by a signature.

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
