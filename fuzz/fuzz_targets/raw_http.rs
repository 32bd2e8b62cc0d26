#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::raw_http;

fuzz_target!(|bytes: &[u8]| {
    raw_http::any_bytes(bytes);
});
