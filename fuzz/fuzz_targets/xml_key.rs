#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::rules::xml;

fuzz_target!(|bytes: &[u8]| {
    xml::check(bytes);
});
