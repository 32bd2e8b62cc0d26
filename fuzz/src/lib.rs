//! The rules that the fuzz targets try: those of the property tests, and two more.

pub mod answer;
pub mod record_key;
#[path = "../../tests/properties/rules/mod.rs"]
pub mod rules;
