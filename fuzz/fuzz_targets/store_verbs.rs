#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::rules::verbs;

fuzz_target!(|bytes: &[u8]| {
    verbs::by_slots(bytes);
});
