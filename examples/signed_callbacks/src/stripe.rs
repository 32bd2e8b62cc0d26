//! Stripe: `Stripe-Signature: t=…,v1=…`, HMAC-SHA-256 of `t.body` in hexadecimal.
//!
//! Source: "Verify webhook signatures manually", Stripe's documentation.

use std::time::SystemTime;

use axum::http::HeaderMap;

use super::{clock, mac};

/// `secret` is the endpoint's, all of it, with `whsec_`.
pub(crate) fn verify(secret: &str, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Result<(), &'static str> {
    let header = headers.get("stripe-signature").and_then(|value| value.to_str().ok()).ok_or("no Stripe-Signature")?;
    let items = || header.split(',').filter_map(|item| item.trim().split_once('='));
    let stamp = items().find(|(name, _)| *name == "t").map(|(_, stamp)| stamp).ok_or("no time stamp")?;
    // There are two while a secret is being replaced. `v0` must not be relied on.
    let signatures = items().filter(|(name, _)| *name == "v1").filter_map(|(_, signature)| mac::unhex(signature));
    if !mac::is_one_of(signatures, secret.as_bytes(), &[stamp.as_bytes(), b".", body]) {
        return Err("the signature does not match");
    }
    if clock::is_recent(stamp, now) { Ok(()) } else { Err("the time stamp is too old") }
}
