use std::{fmt, sync::Arc};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::token::base64url;
use crate::value::{Binding, Digest, SecretTooShort, hex};

/// Secrets that tokens are signed with, by HMAC-SHA256 (RFC 2104, FIPS 198-1).
///
/// One secret signs, and all are accepted. A secret can be replaced without a token being refused, in three steps, each
/// on all processes before the next begins:
///
/// 1. accept the new one: `SigningKeys::new(old)?.accept(new)?`
/// 2. sign with it: `SigningKeys::new(new)?.accept(old)?`
/// 3. once the lifetime of a token has passed, and the clock skew: `SigningKeys::new(new)?`
///
/// A token names the secret that it was signed with by an identifier that is derived from the secret, so nobody has to
/// assign identifiers. `Debug` shows the identifiers and nothing else.
///
/// ```
/// use tower_idempotency::token::SigningKeys;
///
/// # let (new, old) = ([1; 32], [2; 32]);
/// let keys = SigningKeys::new(new)?.accept(old)?;
/// assert!(SigningKeys::new("too short").is_err());
/// # drop(keys);
/// # Ok::<_, tower_idempotency::SecretTooShort>(())
/// ```
#[derive(Clone)]
pub struct SigningKeys {
    signing: SigningKey,
    accepted: Vec<SigningKey>,
}

/// A secret and its name.
#[derive(Clone)]
struct SigningKey {
    id: [u8; ID],
    mac: Arc<Hmac<Sha256>>,
}

const VERSION: u8 = 1;
const ID: usize = 8;
const NONCE: usize = 32;
const MAC: usize = 32;

/// Where the parts of a token end: version, identifier of the secret, expiry, nonce, MAC.
const ID_ENDS: usize = 1 + ID;
const EXPIRY_ENDS: usize = ID_ENDS + 8;
const NONCE_ENDS: usize = EXPIRY_ENDS + NONCE;
const LENGTH: usize = NONCE_ENDS + MAC;

/// Different messages never share an input: each begins with its own of these.
const NAMING: &[u8] = b"tower-idempotency: identifier of a secret, 1";
const SIGNING: &[u8] = b"tower-idempotency: token, 1";

impl SigningKeys {
    /// Creates keys that sign tokens with this secret, and accept those that are signed with it.
    ///
    /// The secret should be random bytes, the same on every process, from a source made for secrets, such as `openssl
    /// rand 32`.
    ///
    /// # Errors
    ///
    /// Returns an error if the secret is shorter than 32 bytes, the length of the hash (RFC 2104, section 3).
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self, SecretTooShort> {
        Ok(Self { signing: SigningKey::new(secret.as_ref())?, accepted: Vec::new() })
    }

    /// Accepts tokens that are signed with this secret as well.
    ///
    /// # Errors
    ///
    /// Returns an error if the secret is shorter than 32 bytes.
    pub fn accept(mut self, secret: impl AsRef<[u8]>) -> Result<Self, SecretTooShort> {
        self.accepted.push(SigningKey::new(secret.as_ref())?);
        Ok(self)
    }

    /// Signs a token, as a text of 108 characters.
    pub(crate) fn sign(&self, binding: &Binding, expires: u64, nonce: &[u8; NONCE]) -> String {
        let mut token = [0; LENGTH];
        token[0] = VERSION;
        token[1..ID_ENDS].copy_from_slice(&self.signing.id);
        token[ID_ENDS..EXPIRY_ENDS].copy_from_slice(&expires.to_be_bytes());
        token[EXPIRY_ENDS..NONCE_ENDS].copy_from_slice(nonce);
        let mac = self.signing.mac_of(&token[..NONCE_ENDS], binding).finalize().into_bytes();
        token[NONCE_ENDS..].copy_from_slice(&mac);
        base64url::encode(&token)
    }

    /// Returns when `token` expires and the nonce in it, if it was signed for `binding`. MACs are compared in constant
    /// time.
    pub(crate) fn verify(&self, token: &str, binding: &Binding) -> Option<(u64, [u8; NONCE])> {
        let token: [u8; LENGTH] = base64url::decode(token)?;
        let (signed, mac) = token.split_at(NONCE_ENDS);
        let (head, rest) = signed.split_at(ID_ENDS);
        let keys = || [&self.signing].into_iter().chain(&self.accepted);
        let key = keys().find(|key| head[0] == VERSION && head[1..] == key.id)?;
        key.mac_of(signed, binding).verify_slice(mac).ok()?;
        let (expires, nonce) = rest.split_first_chunk()?;
        Some((u64::from_be_bytes(*expires), *nonce.first_chunk()?))
    }
}

impl SigningKey {
    fn new(secret: &[u8]) -> Result<Self, SecretTooShort> {
        if secret.len() < MAC {
            return Err(SecretTooShort { length: secret.len() });
        }
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(secret) else { unreachable!("HMAC takes keys of any length") };
        let name = mac.clone().chain_update(NAMING).finalize().into_bytes();
        let mut id = [0; ID];
        id.copy_from_slice(&name[..ID]);
        Ok(Self { id, mac: Arc::new(mac) })
    }

    /// Returns the MAC over the signed part and the binding. Everything behind the signed part has a fixed length.
    fn mac_of(&self, signed: &[u8], binding: &Binding) -> Hmac<Sha256> {
        let mut bound = Digest::new();
        bound.part(binding.purpose.as_bytes());
        if let Some(principal) = &binding.principal {
            bound.part(principal.as_bytes());
        }
        Hmac::clone(&self.mac).chain_update(SIGNING).chain_update(signed).chain_update(bound.finish())
    }
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepted: Vec<_> = self.accepted.iter().map(|key| hex(&key.id)).collect();
        f.debug_struct("SigningKeys").field("signing", &hex(&self.signing.id)).field("accepted", &accepted).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(byte: u8) -> SigningKeys {
        SigningKeys::new([byte; 32]).unwrap()
    }

    fn ann() -> Binding {
        Binding::new("order", Some("ann"))
    }

    fn token(keys: &SigningKeys) -> String {
        keys.sign(&ann(), 7, &[9; NONCE])
    }

    /// Tokens are in the pages of clients when a process is replaced: a change of the layout needs another version.
    #[test]
    fn a_token_of_version_0_1_is_accepted() {
        let written = "AbnjduBpI9YwAAAAAAAAAAcJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCTJpLTa5qw8aDu2UK9_v75IzrNs_jApIhE-QZ59dyq3U";
        assert_eq!(token(&keys(1)), written);
        assert_eq!(keys(1).verify(written, &ann()), Some((7, [9; NONCE])));
    }

    #[test]
    fn what_was_signed_is_accepted_for_what_it_was_signed_for() {
        let token = token(&keys(1));
        assert_eq!(token.len(), 108);
        assert_eq!(keys(1).verify(&token, &ann()), Some((7, [9; NONCE])));
        for other in [
            Binding::new("order", Some("bob")),
            Binding::new("order", Some("")),
            Binding::new("order", None),
            Binding::new("refund", Some("ann")),
            Binding::new("orderann", None),
            Binding::new("ordera", Some("nn")),
        ] {
            assert_eq!(keys(1).verify(&token, &other), None, "{other:?}");
        }
    }

    #[test]
    fn every_bit_counts() {
        let token: [u8; LENGTH] = base64url::decode(&token(&keys(1))).unwrap();
        for bit in 0..LENGTH * 8 {
            let mut changed = token;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(keys(1).verify(&base64url::encode(&changed), &ann()), None, "{bit}");
        }
        for length in [0, 1, LENGTH - 3, LENGTH - 1] {
            assert_eq!(keys(1).verify(&base64url::encode(&token[..length]), &ann()), None);
        }
    }

    #[test]
    fn secrets_are_replaced_in_three_steps() {
        let (old, new) = (keys(1), keys(2));
        let accepting = old.clone().accept([2; 32]).unwrap();
        let signing = new.clone().accept([1; 32]).unwrap();
        let steps = [old, accepting, signing, new];
        for (n, issuer) in steps.iter().enumerate() {
            for (m, verifier) in steps.iter().enumerate() {
                let expected = n.abs_diff(m) <= 1 || (n, m) == (3, 1) || (n, m) == (0, 2);
                assert_eq!(verifier.verify(&token(issuer), &ann()).is_some(), expected, "{n} {m}");
            }
        }
        assert_eq!(keys(3).verify(&token(&keys(1)), &ann()), None);
    }

    #[test]
    fn a_secret_is_long_and_not_shown() {
        assert_eq!(SigningKeys::new([1; 31]).unwrap_err(), SecretTooShort { length: 31 });
        assert!(keys(1).accept("").is_err());
        let secret = "correct horse battery staple, four times over";
        let shown = format!("{:?}", SigningKeys::new(secret).unwrap());
        assert!(!shown.contains("horse") && !shown.contains(&hex(secret.as_bytes())), "{shown}");
    }

    /// Computed by another implementation (Python's `hmac` and `hashlib`).
    #[test]
    fn a_known_token() {
        assert_eq!(
            token(&keys(1)),
            "AbnjduBpI9YwAAAAAAAAAAcJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCTJpLTa5qw8aDu2UK9_v75IzrNs_jApIhE-QZ59dyq3U"
        );
    }
}
