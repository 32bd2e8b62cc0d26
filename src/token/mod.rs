//! Tokens that the server issues, each good for one operation.
//!
//! [`Tokens`](crate::Tokens) issues them and makes the [`TokenLayer`](crate::TokenLayer) that requires one; inside a
//! handler, [`TokenIssuer`] issues them. A token is a secret: `Debug` shows none, the store has a digest, and a signed
//! one is compared in constant time.

// For maintainers, in reading order:
//
// - `rule`: what a layer accepts; also the one place that issues a token and derives its successor.
// - `issuer`: the handle in a handler, and the flag that marks an answer with a token in it as `no-store`.
// - `signer`: HMAC over purpose, principal, expiry and nonce, or nothing without the feature. `base64url`: the text of
//   a token.

mod base64url;
#[cfg(feature = "axum")]
mod extractor;
mod issuer;
mod rule;
mod signer;
pub(crate) mod tokens;

#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub use self::extractor::MissingTokenIssuer;
use self::signer::Signer;
#[cfg(feature = "signed-tokens")]
#[cfg_attr(docsrs, doc(cfg(feature = "signed-tokens")))]
pub use self::signer::SigningKeys;
#[cfg(feature = "signed-tokens")]
use self::signer::WallClock;
pub use self::{
    issuer::{IssueError, TokenIssuer},
    rule::Token,
};
pub(crate) use self::{
    issuer::{IssuedFlag, IssuerContext},
    rule::{Issuer, PresentedToken, TokenRule},
};
