#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::redis_record;

fuzz_target!(|bytes: &[u8]| {
    redis_record::any_value(bytes);
    redis_record::comes_back(bytes);
});
