#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::answer;

fuzz_target!(|bytes: &[u8]| {
    answer::any_payload(bytes);
    answer::comes_back(bytes);
});
