//! What a request states about itself: key, scope, caller, fingerprint, route.

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
    route::route,
};
