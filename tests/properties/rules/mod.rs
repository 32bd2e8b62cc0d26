//! What has to hold for any input. The property tests draw plausible inputs for these rules, the fuzz targets
//! (`fuzz/`) draw any.
//!
//! Each rule goes through the public API and panics if it is broken.
#![allow(dead_code, unreachable_pub)] // each user takes what it needs

pub mod choices;
mod database;
pub mod form;
pub mod header;
pub mod json_fingerprint;
pub mod json_key;
mod json_value;
pub mod multipart;
pub mod probe;
mod slot_store;
pub mod verbs;
pub mod xml;
