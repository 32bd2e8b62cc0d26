#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::rules::header;

fuzz_target!(|bytes: &[u8]| {
    header::check(bytes);
});
