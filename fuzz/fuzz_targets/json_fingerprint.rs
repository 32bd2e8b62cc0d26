#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::rules::json_fingerprint;

fuzz_target!(|bytes: &[u8]| {
    json_fingerprint::by_value(bytes);
    json_fingerprint::any_body(bytes);
});
