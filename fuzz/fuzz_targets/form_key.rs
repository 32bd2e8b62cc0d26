#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_idempotency_fuzz::rules::{form, multipart};

fuzz_target!(|bytes: &[u8]| {
    form::key(bytes);
    form::fingerprint(bytes);
    multipart::any_body(bytes);
    multipart::media_type(&format!("multipart/form-data;{}", String::from_utf8_lossy(bytes)));
    multipart::sent_again(bytes);
});
