//! Hostile heads, bodies and records: whatever comes, an answer that fits it, and never a panic.

mod content_types;
mod header_keys;
mod memory;
mod multipart;
mod other_keys;
mod probe;
mod record_keys;
mod stored;
mod strings;
