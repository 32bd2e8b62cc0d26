use std::fmt;

use super::key::CompactDigest;

/// A digest of what a request asks for. Another fingerprint under the same key is a client's mistake, and never a
/// replay.
///
/// A fingerprint carries the scheme that made it. Fingerprints of different schemes are never equal, so a record
/// written before the scheme was changed refuses a duplicate (422) instead of matching it by accident.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    scheme: u8,
    digest: [u8; 32],
}

impl Fingerprint {
    /// No fingerprint: every request under a key counts as the same one.
    pub const OFF: Self = Self { scheme: 0, digest: [0; 32] };

    // Schemes 1 to 7 are those of layouts that were never released.

    /// Method, path, query, coding, media type and the bytes of the body.
    pub(crate) const BYTES: u8 = 8;
    /// The result of a closure.
    pub(crate) const CUSTOM: u8 = 9;
    /// The value of a JSON body.
    #[cfg(feature = "json")]
    pub(crate) const JSON: u8 = 10;
    /// Some parts of a JSON body.
    #[cfg(feature = "json")]
    pub(crate) const JSON_ONLY: u8 = 11;
    /// All but some parts of a JSON body.
    #[cfg(feature = "json")]
    pub(crate) const JSON_WITHOUT: u8 = 12;
    /// The bytes of a JSON body without a single value.
    #[cfg(feature = "json")]
    pub(crate) const JSON_BYTES: u8 = 13;
    /// The fields of a form.
    #[cfg(feature = "form")]
    pub(crate) const FORM: u8 = 14;

    /// Creates a builder for a fingerprint of your own, made of parts.
    ///
    /// ```
    /// use tower_idempotency::fingerprint::Fingerprint;
    ///
    /// let a = Fingerprint::builder().part(b"eur").part(b"100").build();
    /// assert_ne!(a, Fingerprint::builder().part(b"eur1").part(b"00").build());
    /// ```
    pub fn builder() -> FingerprintBuilder {
        FingerprintBuilder { scheme: Self::CUSTOM, digest: CompactDigest::new() }
    }

    /// Creates the fingerprint that a store has kept.
    #[must_use]
    pub const fn from_parts(scheme: u8, digest: [u8; 32]) -> Self {
        Self { scheme, digest }
    }

    /// Returns the scheme that made it. 0 is [`OFF`](Self::OFF).
    #[must_use]
    pub const fn scheme(&self) -> u8 {
        self.scheme
    }

    /// Returns the digest itself.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint(scheme {})", self.scheme)
    }
}

/// A builder of a [`Fingerprint`]; see [`Fingerprint::builder`].
#[derive(Clone)]
#[must_use = "a fingerprint is made by `build`"]
pub struct FingerprintBuilder {
    scheme: u8,
    digest: CompactDigest,
}

impl FingerprintBuilder {
    /// Adds a part. Parts are delimited by their lengths.
    pub fn part(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.digest.part(bytes.as_ref());
        self
    }

    /// Returns the fingerprint of all the parts so far.
    #[must_use]
    pub fn build(self) -> Fingerprint {
        Fingerprint { scheme: self.scheme, digest: self.digest.finish() }
    }
}

impl fmt::Debug for FingerprintBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FingerprintBuilder(scheme {})", self.scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_never_match() {
        let one = Fingerprint::from_parts(1, [9; 32]);
        assert_ne!(one, Fingerprint::from_parts(2, [9; 32]));
        assert_ne!(Fingerprint::from_parts(1, [0; 32]), Fingerprint::OFF);
    }
}
