//! What a request states about itself: key, scope, caller, fingerprint, route.

#[cfg(feature = "axum")]
mod by_extractor;
mod cookies;
pub mod credential;
pub mod fingerprint;
#[cfg(feature = "form")]
mod form;
mod into;
#[cfg(feature = "json")]
mod json;
pub mod key;
mod media;
mod multipart;
mod pairs;
mod route;
pub mod scope;
mod structured;
#[cfg(feature = "json")]
mod value;
#[cfg(feature = "xml")]
mod xml;

#[cfg(feature = "json")]
pub(crate) use self::value::fingerprint_of_value;
pub(crate) use self::{
    credential::{Credential, Credentials, Seen},
    route::route,
};
#[cfg(feature = "form")]
pub(crate) use self::{form::first_field, media::is_multipart};
