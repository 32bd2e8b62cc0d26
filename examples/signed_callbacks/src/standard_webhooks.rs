//! Standard Webhooks and Svix: `webhook-signature: v1,… v1,…`, HMAC-SHA-256 of `id.timestamp.body` in base64.
//!
//! Source: the Standard Webhooks specification, "Signature scheme"; "Verifying webhooks manually", Svix's documentation.

use std::time::SystemTime;

use axum::http::HeaderMap;
use base64::{Engine, prelude::BASE64_STANDARD};

use super::{clock, mac};

/// `secret` is `whsec_` and base64.
pub(crate) fn verify(secret: &str, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Result<(), &'static str> {
    let secret = BASE64_STANDARD.decode(secret.trim_start_matches("whsec_")).map_err(|_| "the secret is no base64")?;
    // The preset takes the same identifier for its key: it refuses a request with two.
    let prefix = if headers.contains_key("svix-id") { "svix" } else { "webhook" };
    let field = |name: &str| headers.get(format!("{prefix}-{name}")).and_then(|value| value.to_str().ok());
    let (Some(id), Some(stamp), Some(signatures)) = (field("id"), field("timestamp"), field("signature")) else {
        return Err("no id, timestamp or signature");
    };
    let signatures = signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
    let signatures = signatures.filter_map(|signature| BASE64_STANDARD.decode(signature).ok());
    if !mac::is_one_of(signatures, &secret, &[id.as_bytes(), b".", stamp.as_bytes(), b".", body]) {
        return Err("the signature does not match");
    }
    if clock::is_recent(stamp, now) { Ok(()) } else { Err("the time stamp is too old") }
}
