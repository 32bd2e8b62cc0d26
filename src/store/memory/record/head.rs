//! The fields that every record has, in 77 bytes at the head of its block.
//!
//! | bytes | hold |
//! | --- | --- |
//! | 0 to 5 | flags, and how long key and payload are |
//! | 6 to 9 | the attempt |
//! | 10 to 58 | claimant and fingerprint, which the rules compare |
//! | 59 to 76 | three times of six bytes: when it was created, `mark`, when it expires |

use crate::value::{Claimant, Fingerprint, State};

use super::{
    moment::{FOREVER, Moment},
    text,
    weight::{Summary, Weight},
};

const STATE: u16 = 0b11;
pub(super) const AT_MOST_ONCE: u16 = 1 << 2;
pub(super) const TAKEOVER: u16 = 1 << 3;
pub(super) const CALLER_IS_NEW: u16 = 1 << 4;
/// There is a payload; a settled record without one is a tombstone.
pub(super) const PAYLOAD: u16 = 1 << 5;
pub(super) const WAITED_FOR: u16 = 1 << 6;
/// There is an `Extra`.
pub(super) const EXTRA: u16 = 1 << 7;

/// What every record has.
#[derive(Clone)]
pub(super) struct Head {
    /// The state in two bits, then one bit each for the flags above and for the optional fields of `text`.
    pub(super) flags: u16,
    /// The length of the key, 769 at most.
    pub(super) key_bytes: u16,
    /// The length of the payload in the block.
    pub(super) payload_bytes: u16,
    pub(super) attempt: u32,
    pub(super) claimant: Claimant,
    pub(super) fingerprint: Fingerprint,
    pub(super) created: u64,
    /// For a running record, when the lease lapses; for a settled one, since when.
    pub(super) mark: u64,
    pub(super) expires: u64,
}

impl Head {
    /// Its size in a block, in bytes.
    pub(super) const LENGTH: usize = 77;

    #[inline]
    pub(super) fn read(block: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, text) = block.split_first_chunk::<{ Self::LENGTH }>()?;
        let moment = |bytes| Moment::from_bytes(bytes).ms();
        let head = Self {
            flags: u16::from_le_bytes(part::<0, 2>(bytes)),
            key_bytes: u16::from_le_bytes(part::<2, 2>(bytes)),
            payload_bytes: u16::from_le_bytes(part::<4, 2>(bytes)),
            attempt: u32::from_le_bytes(part::<6, 4>(bytes)),
            claimant: Claimant::from_bytes(part::<10, 16>(bytes)),
            fingerprint: Fingerprint::from_parts(bytes[26], part::<27, 32>(bytes)),
            created: moment(part::<59, 6>(bytes)),
            mark: moment(part::<65, 6>(bytes)),
            expires: moment(part::<71, 6>(bytes)),
        };
        Some((head, text))
    }

    #[inline]
    pub(super) fn write(&self, block: &mut [u8]) {
        let Some(bytes) = block.first_chunk_mut::<{ Self::LENGTH }>() else { return };
        let moment = |ms| Moment::new(ms).to_bytes();
        bytes[0..2].copy_from_slice(&self.flags.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.key_bytes.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[6..10].copy_from_slice(&self.attempt.to_le_bytes());
        bytes[10..26].copy_from_slice(&self.claimant.to_bytes());
        bytes[26] = self.fingerprint.scheme();
        bytes[27..59].copy_from_slice(self.fingerprint.digest());
        bytes[59..65].copy_from_slice(&moment(self.created));
        bytes[65..71].copy_from_slice(&moment(self.mark));
        bytes[71..77].copy_from_slice(&moment(self.expires));
    }

    /// Returns what others need to know of the record, whose `extra` keeps so many bytes.
    #[inline]
    pub(super) fn summary(&self, extra: usize) -> Summary {
        let text = usize::from(self.key_bytes) + text::counted_bytes(self.flags) + usize::from(self.payload_bytes);
        let weight = Weight { state: self.state(), bytes: text + extra };
        Summary { weight, claimant: self.claimant, expires: self.expires.min(FOREVER) }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        match self.flags & STATE {
            0 => State::Issued,
            1 => State::Running,
            2 => State::Settled,
            _ => State::Released,
        }
    }

    pub(super) fn set_state(&mut self, state: State) {
        self.flags = self.flags & !STATE | state as u16;
    }

    pub(super) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn set(&mut self, flag: u16, on: bool) {
        self.flags = self.flags & !flag | if on { flag } else { 0 };
    }
}

/// Returns `N` bytes from `FROM` on.
#[inline]
fn part<const FROM: usize, const N: usize>(bytes: &[u8; Head::LENGTH]) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[FROM..FROM + N]);
    part
}
