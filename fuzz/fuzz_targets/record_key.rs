#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::record_key;

fuzz_target!(|bytes: &[u8]| {
    record_key::read_back(bytes);
    record_key::stay_apart(bytes);
});
