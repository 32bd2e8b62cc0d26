//! HMAC-SHA-256, compared in constant time.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Whether one of `signatures` is that of `parts`, one behind the other, under `secret`.
pub(crate) fn is_one_of(signatures: impl IntoIterator<Item = Vec<u8>>, secret: &[u8], parts: &[&[u8]]) -> bool {
    signatures.into_iter().any(|signature| mac(secret, parts).verify_slice(&signature).is_ok())
}

fn mac(secret: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key may have any length");
    parts.iter().fold(mac, Mac::chain_update)
}

/// Reads hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2 && !text.starts_with('+'))?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}
