//! GitHub: `X-Hub-Signature-256: sha256=…`, HMAC-SHA-256 of the body in hexadecimal.
//!
//! Source: "Validating webhook deliveries", GitHub's documentation.

use axum::http::HeaderMap;

use super::mac;

pub(crate) fn verify(secret: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), &'static str> {
    let header = headers.get("x-hub-signature-256").and_then(|value| value.to_str().ok());
    let signature = header.and_then(|header| header.strip_prefix("sha256=")).ok_or("no X-Hub-Signature-256")?;
    if mac::is_one_of(mac::unhex(signature), secret.as_bytes(), &[body]) {
        Ok(())
    } else {
        Err("the signature does not match")
    }
}
