//! WeChat Pay v3: `Wechatpay-Signature` over time stamp, nonce and body, and a resource that is encrypted.
//!
//! Source: "Signature verification" and "Decrypting the callback message", WeChat Pay API v3.

use std::{collections::HashMap, time::SystemTime};

use aes_gcm::{
    Aes256Gcm, KeyInit,
    aead::{Aead, Payload},
};
use axum::http::HeaderMap;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;

use super::{clock, rsa_sha256::PublicKey};

/// The platform's public keys by serial number (`PUB_KEY_ID_…`, or that of a platform certificate).
pub(crate) type PlatformKeys = HashMap<String, PublicKey>;

pub(crate) fn verify(
    keys: &PlatformKeys,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> Result<(), &'static str> {
    let field = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(serial), Some(stamp), Some(nonce), Some(signature)) = (
        field("wechatpay-serial"),
        field("wechatpay-timestamp"),
        field("wechatpay-nonce"),
        field("wechatpay-signature"),
    ) else {
        return Err("a Wechatpay header is missing");
    };
    let key = keys.get(serial).ok_or("the serial number is not known")?;
    let message = [stamp.as_bytes(), b"\n", nonce.as_bytes(), b"\n", body, b"\n"].concat();
    if !key.verifies(&message, signature) {
        return Err("the signature does not match");
    }
    if clock::is_recent(stamp, now) { Ok(()) } else { Err("the time stamp is too old") }
}

/// What a notification says, as far as the handler needs it.
#[derive(Deserialize)]
pub(crate) struct Notification {
    pub(crate) event_type: String,
    resource: Resource,
}

#[derive(Deserialize)]
struct Resource {
    algorithm: String,
    ciphertext: String,
    #[serde(default)]
    associated_data: String,
    nonce: String,
}

impl Notification {
    /// Decrypts the resource; `key` is the `APIv3` key of the merchant, 32 bytes.
    pub(crate) fn decrypt(&self, key: &[u8; 32]) -> Option<Vec<u8>> {
        let Resource { algorithm, ciphertext, associated_data, nonce } = &self.resource;
        if algorithm != "AEAD_AES_256_GCM" {
            return None;
        }
        let nonce: [u8; 12] = nonce.as_bytes().try_into().ok()?;
        let ciphertext = BASE64_STANDARD.decode(ciphertext).ok()?;
        let payload = Payload { msg: &ciphertext, aad: associated_data.as_bytes() };
        Aes256Gcm::new(key.into()).decrypt(&nonce.into(), payload).ok()
    }
}
