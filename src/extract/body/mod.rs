//! Values out of bodies: forms, multipart, XML, and what they have in common.
//!
//! Each format is parsed within limits on fields, depth and bytes; a field that stands twice is malformed, since two
//! readers could choose differently.

#[cfg(feature = "form")]
pub(super) mod form;
pub(super) mod media;
pub(super) mod multipart;
pub(super) mod pairs;
pub(super) mod structured;
#[cfg(feature = "xml")]
pub(super) mod xml;

#[cfg(feature = "form")]
pub(crate) use self::{form::first_field, media::is_multipart};
