//! RSA with SHA-256 and the padding of PKCS #1 v1.5 (RFC 8017, section 8.2).

use base64::{Engine, prelude::BASE64_STANDARD};
use rsa::{
    PublicKey as RsaPublicKey,
    pkcs1v15::{Signature, VerifyingKey},
    pkcs8::DecodePublicKey,
    sha2::Sha256,
    signature::Verifier,
};

/// A platform's public key.
#[derive(Clone)]
pub(crate) struct PublicKey(VerifyingKey<Sha256>);

impl PublicKey {
    /// Reads `-----BEGIN PUBLIC KEY-----`.
    pub(crate) fn from_pem(pem: &str) -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self(VerifyingKey::new(RsaPublicKey::from_public_key_pem(pem)?)))
    }

    /// Whether `signature`, in base64, is that of `message`.
    pub(crate) fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let signature = BASE64_STANDARD.decode(signature).ok();
        let signature = signature.and_then(|signature| Signature::try_from(&*signature).ok());
        signature.is_some_and(|signature| self.0.verify(message, &signature).is_ok())
    }
}
