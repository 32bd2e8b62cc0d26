use std::{error::Error, fmt, sync::Arc};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::SecretNumber;
use crate::value::{Caller, Fingerprint};

/// The length of the hash, in bytes: a shorter secret is weaker than the hash itself (RFC 2104, section 3).
const SHORTEST: usize = 32;

/// A secret that makes what a store, a log or another service sees of a request useless to somebody who can only guess.
///
/// Without a secret, callers, fingerprints, log ids and child keys are plain digests: a reader can test a
/// guess, and a guess at a card number or a weak password succeeds in a second. With a secret, they are HMAC-SHA256
/// values (RFC 2104) that nobody can test without the secret.
///
/// Names do not change: the route, the scope and the key of a record do not depend on a secret, since a record has to
/// be found after the secret was replaced.
///
/// # Rotation
///
/// A record states by a number which secret its values were made with. The number is derived from the secret, so nobody
/// has to assign numbers. Replace a secret in three steps, each on all processes before the next one begins:
///
/// 1. accept the new one: `Secret::new(old)?.accept(new)?`
/// 2. use it: `Secret::new(new)?.accept(old)?`
/// 3. when the longest retention has passed since step 2: `Secret::new(new)?`
///
/// A request that meets a record whose secret is not at hand receives 409 `record-incompatible`, and does not run.
/// Records that were made before the first secret was set are still compared, without a secret.
///
/// ```
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, Secret};
///
/// # fn layer(bytes: [u8; 32]) -> Result<(), tower_idempotency::SecretTooShort> {
/// let layer = IdempotencyLayer::new(MemoryStore::new()).secret(Secret::new(bytes)?);
/// # drop(layer);
/// # Ok(())
/// # }
/// # layer([7; 32]).unwrap();
/// ```
#[derive(Clone)]
pub struct Secret(Arc<[SecretKey]>);

/// A secret, ready for use, and its number.
struct SecretKey {
    number: SecretNumber,
    mac: Hmac<Sha256>,
}

/// Different messages never share an input: each begins with its own of these.
const NUMBER: &[u8] = b"tower-idempotency: number of a secret, 1";
const CALLER: &[u8] = b"tower-idempotency: caller, 1";
const FINGERPRINT: &[u8] = b"tower-idempotency: fingerprint, 1";

impl Secret {
    /// Creates a secret for use. It should be 32 random bytes or more, the same on every process, from a source made
    /// for secrets, such as `openssl rand 32`.
    ///
    /// # Errors
    ///
    /// Returns an error if the secret is shorter than 32 bytes.
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self, SecretTooShort> {
        Ok(Self(Arc::from([SecretKey::new(secret.as_ref())?])))
    }

    /// Accepts records that were made with this secret as well.
    ///
    /// # Errors
    ///
    /// Returns an error if the secret is shorter than 32 bytes.
    pub fn accept(self, secret: impl AsRef<[u8]>) -> Result<Self, SecretTooShort> {
        let other = SecretKey::new(secret.as_ref())?;
        Ok(Self(self.0.iter().cloned().chain([other]).collect()))
    }

    /// Returns the number of the secret that is used.
    #[must_use]
    pub fn number(&self) -> SecretNumber {
        self.0.first().map_or(SecretNumber::NONE, |key| key.number)
    }

    /// Returns the caller and the fingerprint under the secret of this number, if that secret is at hand.
    pub(crate) fn seal(
        &self,
        number: SecretNumber,
        caller: Caller,
        fingerprint: Fingerprint,
    ) -> Option<(Caller, Fingerprint)> {
        if number == SecretNumber::NONE {
            return Some((caller, fingerprint));
        }
        let key = self.key(number)?;
        Some((key.caller(caller), key.fingerprint(fingerprint)))
    }

    /// Returns an HMAC of `parts` under the secret of this number, each part preceded by its length.
    pub(crate) fn mac(&self, number: SecretNumber, parts: &[&[u8]]) -> Option<[u8; 32]> {
        let mut mac = self.key(number)?.mac.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        Some(mac.finalize().into_bytes().into())
    }

    fn key(&self, number: SecretNumber) -> Option<&SecretKey> {
        self.0.iter().find(|key| key.number == number)
    }
}

impl SecretKey {
    fn new(secret: &[u8]) -> Result<Self, SecretTooShort> {
        if secret.len() < SHORTEST {
            return Err(SecretTooShort { length: secret.len() });
        }
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(secret) else { unreachable!("HMAC takes keys of any length") };
        let [a, b, c, d, ..] = <[u8; 32]>::from(mac.clone().chain_update(NUMBER).finalize().into_bytes());
        Ok(Self { number: SecretNumber::from_u32(u32::from_be_bytes([a, b, c, d]).max(1)), mac })
    }

    fn caller(&self, caller: Caller) -> Caller {
        if caller == Caller::NONE {
            return caller;
        }
        let digest = self.sealed(CALLER, caller.scheme(), caller.digest());
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        Caller::from_parts(caller.scheme(), half)
    }

    fn fingerprint(&self, fingerprint: Fingerprint) -> Fingerprint {
        if fingerprint == Fingerprint::OFF {
            return fingerprint;
        }
        Fingerprint::from_parts(
            fingerprint.scheme(),
            self.sealed(FINGERPRINT, fingerprint.scheme(), fingerprint.digest()),
        )
    }

    fn sealed(&self, label: &[u8], scheme: u8, digest: &[u8]) -> [u8; 32] {
        let mac = self.mac.clone().chain_update(label).chain_update([scheme]).chain_update(digest);
        mac.finalize().into_bytes().into()
    }
}

impl Clone for SecretKey {
    fn clone(&self) -> Self {
        Self { number: self.number, mac: self.mac.clone() }
    }
}

/// Shows the numbers of the secrets, and nothing else.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| key.number)).finish()
    }
}

/// The error for a secret that is shorter than 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretTooShort {
    /// The length of the secret, in bytes.
    pub length: usize,
}

impl fmt::Display for SecretTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the secret has {} bytes; at least 32 are needed", self.length)
    }
}

impl Error for SecretTooShort {}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(byte: u8) -> Caller {
        Caller::from_parts(1, [byte; 16])
    }

    fn fingerprint(byte: u8) -> Fingerprint {
        Fingerprint::from_parts(1, [byte; 32])
    }

    #[test]
    fn each_secret_makes_its_own_values() {
        let (one, two) = (Secret::new([1; 32]).unwrap(), Secret::new([2; 32]).unwrap());
        let sealed = one.seal(one.number(), caller(7), fingerprint(7)).unwrap();
        assert_ne!(sealed, (caller(7), fingerprint(7)));
        assert_eq!(Some(sealed), one.seal(one.number(), caller(7), fingerprint(7)));
        assert_ne!(Some(sealed), two.seal(two.number(), caller(7), fingerprint(7)));
        assert_eq!(one.seal(two.number(), caller(7), fingerprint(7)), None);
        assert_eq!(one.seal(SecretNumber::NONE, caller(7), fingerprint(7)), Some((caller(7), fingerprint(7))));
    }

    #[test]
    fn nobody_and_no_fingerprint_stay_what_they_are() {
        let secret = Secret::new([1; 32]).unwrap();
        let none = (Caller::NONE, Fingerprint::OFF);
        assert_eq!(secret.seal(secret.number(), none.0, none.1), Some(none));
    }

    #[test]
    fn a_former_secret_is_accepted_until_it_is_dropped() {
        let (old, new) = (Secret::new([1; 32]).unwrap(), Secret::new([2; 32]).unwrap());
        let both = new.clone().accept([1; 32]).unwrap();
        assert_eq!(both.number(), new.number());
        assert_eq!(
            both.seal(old.number(), caller(7), fingerprint(7)),
            old.seal(old.number(), caller(7), fingerprint(7))
        );
        assert_eq!(new.mac(old.number(), &[b"x"]), None);
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert_eq!(Secret::new([1; 31]).unwrap_err(), SecretTooShort { length: 31 });
        assert!(Secret::new([1; 32]).unwrap().accept("").is_err());
    }

    #[test]
    fn debug_shows_numbers_only() {
        let shown = format!("{:?}", Secret::new("correct horse battery staple, four times over").unwrap());
        assert!(!shown.contains("horse") && shown.contains("SecretNumber"), "{shown}");
    }
}
