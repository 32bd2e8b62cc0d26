//! What a request states about itself: key, scope, caller, fingerprint, route.
//!
//! - `key`, `scope`, `credential`, `fingerprint`: the four public modules, each a set of functions that return an
//!   extractor.
//! - `route`: the name of the route. `value`: the text of a header or a parameter. `cookies`, `body`, `json`: formats.
//! - `into`: what builders accept in the place of an extractor. `by_extractor`: Axum extractors as scopes.
//!
//! An extractor is a value without state that is built once. It says beforehand whether it needs the body, so that a
//! body is read only if it must be. Input that is malformed is an error, never "no key"; every limit is checked before
//! memory is allocated for it.

mod body;
#[cfg(feature = "axum")]
mod by_extractor;
mod cookies;
pub mod credential;
pub mod fingerprint;
mod into;
#[cfg(feature = "json")]
mod json;
pub mod key;
mod route;
pub mod scope;
#[cfg(feature = "json")]
mod value;

#[cfg(feature = "form")]
pub(crate) use self::body::{first_field, is_multipart};
#[cfg(feature = "json")]
pub(crate) use self::value::fingerprint_of_value;
pub(crate) use self::{
    credential::{Credential, Credentials, Seen},
    route::{full_uri, route},
};
