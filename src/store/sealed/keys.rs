use std::{fmt, sync::Arc};

use bytes::Bytes;
use chacha20poly1305::{AeadInOut, KeyInit as _, Tag, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::value::{SEAL_MARK, SealingKeyId, SecretTooShort, random_bytes, sealed_with};

/// Keys that a [`SealedStore`](super::SealedStore) encrypts with.
///
/// One key seals, and all of them open. A key is replaced in three steps, each on all processes before the next one
/// begins:
///
/// 1. accept the new one: `SealingKeys::new(old)?.accept(new)?`
/// 2. seal with it: `SealingKeys::new(new)?.accept(old)?`
/// 3. when the longest retention has passed since step 2: `SealingKeys::new(new)?`
///
/// What is sealed carries the [number](SealingKeyId) of its key. The number is derived from the key, so nobody has to
/// assign numbers. `Debug` shows the numbers and nothing else.
///
/// ```
/// use tower_idempotency::store::SealingKeys;
///
/// # let (new, old) = ([1; 32], [2; 32]);
/// let keys = SealingKeys::new(new)?.accept(old)?;
/// assert_eq!(keys.id(), SealingKeys::new(new)?.id());
/// assert!(SealingKeys::new("too short").is_err());
/// # Ok::<_, tower_idempotency::SecretTooShort>(())
/// ```
#[derive(Clone)]
pub struct SealingKeys(Arc<[SealingKey]>);

/// A key, ready for use, and its number.
#[derive(Clone)]
struct SealingKey {
    id: SealingKeyId,
    cipher: XChaCha20Poly1305,
}

/// Why sealed bytes are not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    /// They are not sealed.
    Unsealed,
    /// They are of a later version of this crate.
    Newer(SealingKeyId),
    /// The key is not at hand.
    NoKey(SealingKeyId),
    /// They were changed, or moved to another record.
    Altered(SealingKeyId),
}

/// The shortest key, in bytes: as long as that of the cipher.
const SHORTEST: usize = 32;

const VERSION: u8 = 1;
const NONCE: usize = 24;
const TAG: usize = 16;

// What is sealed is: mark, version, number of the key; nonce; the encrypted bytes; tag.
const NONCE_BEGINS: usize = SEAL_MARK.len() + 1 + SealingKeyId::LENGTH;
const TEXT_BEGINS: usize = NONCE_BEGINS + NONCE;

/// By how many bytes what is sealed is longer.
pub(super) const OVERHEAD: usize = TEXT_BEGINS + TAG;

/// Different values never share an input: each begins with its own of these.
const NUMBER: &[u8] = b"tower-idempotency: number of a sealing key, 1";
const CIPHER: &[u8] = b"tower-idempotency: key of a cipher, 1";

impl SealingKeys {
    /// Creates keys of which this one seals. It should be 32 random bytes or more, the same on every process, from a
    /// source made for secrets, such as `openssl rand 32`.
    ///
    /// # Errors
    ///
    /// Returns an error if the key is shorter than 32 bytes.
    pub fn new(key: impl AsRef<[u8]>) -> Result<Self, SecretTooShort> {
        Ok(Self(Arc::from([SealingKey::new(key.as_ref())?])))
    }

    /// Opens what is sealed with this key as well.
    ///
    /// # Errors
    ///
    /// Returns an error if the key is shorter than 32 bytes.
    pub fn accept(self, key: impl AsRef<[u8]>) -> Result<Self, SecretTooShort> {
        let other = SealingKey::new(key.as_ref())?;
        Ok(Self(self.0.iter().cloned().chain([other]).collect()))
    }

    /// Returns the number of the key that seals.
    #[must_use]
    pub fn id(&self) -> SealingKeyId {
        self.0.first().map_or(SealingKeyId::NONE, |key| key.id)
    }

    /// Seals `bytes`, so that they can be opened with the same `context` only. Returns `None` if they are too long for
    /// the cipher, which is at 256 GiB.
    pub(super) fn seal(&self, context: &[u8], bytes: &[u8]) -> Option<Bytes> {
        let key = self.0.first()?;
        let nonce: [u8; NONCE] = random_bytes();
        let mut sealed = Vec::with_capacity(OVERHEAD + bytes.len());
        sealed.extend(SEAL_MARK);
        sealed.push(VERSION);
        sealed.extend(key.id.to_bytes());
        sealed.extend(nonce);
        sealed.extend_from_slice(bytes);
        let text = (&mut sealed[TEXT_BEGINS..]).into();
        let tag = key.cipher.encrypt_inout_detached(&XNonce::from(nonce), context, text).ok()?;
        sealed.extend_from_slice(&tag);
        Some(sealed.into())
    }

    /// Opens sealed bytes, and returns the number of the key as well.
    pub(super) fn open(&self, context: &[u8], sealed: &[u8]) -> Result<(Bytes, SealingKeyId), Unopened> {
        let id = sealed_with(sealed).ok_or(Unopened::Unsealed)?;
        let altered = || Unopened::Altered(id);
        match sealed.get(SEAL_MARK.len()) {
            Some(&VERSION) => {}
            Some(&version) if version > VERSION => return Err(Unopened::Newer(id)),
            _ => return Err(altered()),
        }
        let (nonce, rest) = sealed.get(NONCE_BEGINS..).and_then(<[u8]>::split_first_chunk).ok_or_else(altered)?;
        let (text, tag) = rest.split_last_chunk::<TAG>().ok_or_else(altered)?;
        let (nonce, tag) = (XNonce::from(*nonce), Tag::from(*tag));
        let mut missing = Unopened::NoKey(id);
        // Two keys may have the same number.
        for key in self.0.iter().filter(|key| key.id == id) {
            let mut text = text.to_vec();
            if key.cipher.decrypt_inout_detached(&nonce, context, text.as_mut_slice().into(), &tag).is_ok() {
                return Ok((text.into(), id));
            }
            missing = Unopened::Altered(id);
        }
        Err(missing)
    }
}

impl SealingKey {
    fn new(key: &[u8]) -> Result<Self, SecretTooShort> {
        if key.len() < SHORTEST {
            return Err(SecretTooShort { length: key.len() });
        }
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { unreachable!("HMAC takes keys of any length") };
        let derived = |label| <[u8; 32]>::from(mac.clone().chain_update(label).finalize().into_bytes());
        let [a, b, c, d, ..] = derived(NUMBER);
        let id = u32::from_be_bytes([a, b, c, d]).max(1);
        Ok(Self {
            id: SealingKeyId::from_bytes(id.to_be_bytes()),
            cipher: XChaCha20Poly1305::new(&derived(CIPHER).into()),
        })
    }
}

/// Shows the numbers of the keys, and nothing else.
impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| key.id)).finish()
    }
}

impl Unopened {
    /// Returns the reason, for operators.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Unsealed => "it is not sealed, and only sealed answers are accepted",
            Self::Newer(_) => "it was sealed by a later version",
            Self::NoKey(_) => "the key is not at hand",
            Self::Altered(_) => "it was changed, or belongs to another record",
        }
    }

    pub(super) fn id(self) -> SealingKeyId {
        match self {
            Self::Unsealed => SealingKeyId::NONE,
            Self::Newer(id) | Self::NoKey(id) | Self::Altered(id) => id,
        }
    }
}
