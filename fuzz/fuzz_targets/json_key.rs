#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::rules::json_key;

fuzz_target!(|bytes: &[u8]| {
    json_key::any_body(bytes);
    json_key::drawn(bytes);
});
