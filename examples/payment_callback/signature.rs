//! The signature of a message: HMAC-SHA-256 of its bytes, in hexadecimal.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Shared by platform and shop. Yours is in no source.
const SECRET: &[u8] = b"c0ffee";

pub(crate) const HEADER: &str = "x-signature";

pub(crate) fn sign(message: &[u8]) -> String {
    let mut hex = String::new();
    for byte in mac(message).finalize().into_bytes() {
        let _ = write!(hex, "{byte:02x}"); // into a string: it cannot fail
    }
    hex
}

/// It takes as long for a signature that is nearly right as for any other.
pub(crate) fn verifies(message: &[u8], signature: &str) -> bool {
    let bytes = signature.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    bytes.collect::<Option<Vec<u8>>>().is_some_and(|bytes| mac(message).verify_slice(&bytes).is_ok())
}

fn mac(message: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(SECRET).expect("a key may have any length").chain_update(message)
}
