use std::fmt;

use crate::value::key::hex;

/// Whether a store keeps bytes of the application encrypted, and whether they were decrypted when they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Seal {
    /// The store keeps the bytes as they are, or keeps none.
    None,
    /// The store keeps the bytes encrypted under this key. They were decrypted.
    Opened(SealingKeyId),
    /// The store keeps the bytes encrypted under this key. They were not decrypted: the bytes are the encrypted ones.
    Closed(SealingKeyId),
}

impl Seal {
    /// Returns the seal of `bytes` that were decrypted with `opened`, or with no key.
    pub(super) fn of(bytes: &[u8], opened: Option<SealingKeyId>) -> Self {
        match opened {
            Some(id) => Self::Opened(id),
            None => sealed_with(bytes).map_or(Self::None, Self::Closed),
        }
    }
}

/// The number of a sealing key, which a record carries beside what is sealed with it.
///
/// It is derived from the key. `Display` and `Debug` show it as eight hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SealingKeyId([u8; Self::LENGTH]);

impl SealingKeyId {
    /// No key: the number beside bytes that were expected to be sealed and are not.
    pub const NONE: Self = Self([0; Self::LENGTH]);

    pub(crate) const LENGTH: usize = 4;

    #[cfg(feature = "sealed")]
    pub(crate) const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    #[cfg(feature = "sealed")]
    pub(crate) const fn to_bytes(self) -> [u8; Self::LENGTH] {
        self.0
    }
}

impl fmt::Display for SealingKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for SealingKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKeyId({self})")
    }
}

/// The first bytes of everything that is sealed, in every version. No other payload begins with them, and they are not
/// UTF-8. A version and the number of the key follow.
pub(crate) const SEAL_MARK: [u8; 4] = [0x82, b'T', b'I', b'S'];

/// Returns the number of the key that bytes are sealed with; `None` if they are not sealed. This needs no key.
pub(crate) fn sealed_with(bytes: &[u8]) -> Option<SealingKeyId> {
    let id = bytes.strip_prefix(&SEAL_MARK)?.get(1..=SealingKeyId::LENGTH);
    Some(id.and_then(|id| id.try_into().ok()).map_or(SealingKeyId::NONE, SealingKeyId))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_are_recognized_by_their_mark_and_name_their_key() {
        let sealed = [&SEAL_MARK[..], &[1, 0xa, 0xb, 0xc, 0xd], b"whatever follows"].concat();
        assert_eq!(sealed_with(&sealed).map(|id| id.to_string()).as_deref(), Some("0a0b0c0d"));
        assert_eq!(Seal::of(&sealed, None), Seal::Closed(SealingKeyId([0xa, 0xb, 0xc, 0xd])));
        assert_eq!(sealed_with(&sealed[..6]), Some(SealingKeyId::NONE), "torn");
        for plain in [&b""[..], b"TIS", &[0x82], &[2, 0, 200], &[0x81, 1]] {
            assert_eq!(Seal::of(plain, None), Seal::None);
        }
    }
}
