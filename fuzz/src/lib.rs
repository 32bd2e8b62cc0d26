//! The rules that the fuzz targets try: those of the property tests, and some more.

pub mod answer;
pub mod raw_http;
pub mod record_key;
mod redis_layout;
pub mod redis_record;
mod redis_server;
#[path = "../../tests/properties/rules/mod.rs"]
pub mod rules;
