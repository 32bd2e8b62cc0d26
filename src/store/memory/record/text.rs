//! The texts of an entry in one allocation: key, marks, payload.
//!
//! ```text
//! key | caller | secret | origin (caller, secret) | trace | lease | payload
//! ```
//!
//! Most records have no mark: a caller without credentials, the usual lease, no trace. `Layout` says in sixteen bits
//! which marks are there, so that absent ones take no byte. The order is fixed; a new mark needs a bit and a place in
//! `write`, `bytes`, `payload_from` and `optional_fields`.

use crate::value::{Caller, Claim, Granted, Origin, SecretNumber, TraceContext, millis};

/// The bits of the key's length.
const KEY: u16 = (1 << 10) - 1;
/// Set if the mark is there; the same for those that follow.
const CALLER: u16 = 1 << 10;
const SECRET: u16 = 1 << 11;
const ORIGIN: u16 = 1 << 12;
const TRACE: u16 = 1 << 13;
const LEASE: u16 = 1 << 14;

const SECRET_BYTES: usize = 4;
const LEASE_BYTES: usize = 8;

/// The lease of most records, in milliseconds.
const USUAL_LEASE: u64 = 30_000;

/// Describes how the text of an entry is divided: the key, then the marks that are set, then a payload.
///
/// The lower ten bits hold the length of the key, 769 at most; each mark has one bit above them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::memory) struct Layout(u16);

/// What a record keeps of its claims but most records lack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::memory) struct OptionalFields {
    /// The caller of the claim.
    pub(in crate::store::memory) caller: Caller,
    /// The secret that caller and fingerprint were made with.
    pub(in crate::store::memory) secret: SecretNumber,
    /// The first claim of the operation, from which child keys derive.
    pub(in crate::store::memory) origin: Origin,
    /// The trace in which the operation began.
    pub(in crate::store::memory) trace: Option<TraceContext>,
    /// The length of the lease, in milliseconds.
    pub(in crate::store::memory) lease: u64,
}

impl OptionalFields {
    /// The marks of a record without any.
    const NONE: Self = Self {
        caller: Caller::NONE,
        secret: SecretNumber::NONE,
        origin: Origin::NONE,
        trace: None,
        lease: USUAL_LEASE,
    };

    /// Returns the marks of a granted claim.
    pub(in crate::store::memory) fn of(claim: &Claim, granted: &Granted) -> Self {
        Self {
            caller: claim.caller,
            secret: claim.secret,
            origin: granted.origin,
            trace: claim.trace,
            lease: millis(claim.lease),
        }
    }

    /// Writes the marks behind a key.
    pub(in crate::store::memory) fn write(&self, key: &[u8]) -> (Layout, Box<[u8]>) {
        let mut layout = Layout::of_key(key);
        let mut bytes = [0; 2 * (Caller::LENGTH + SECRET_BYTES) + TraceContext::LENGTH + LEASE_BYTES];
        let mut end = 0;
        let mut put = |flag: u16, part: &[u8]| {
            layout.0 |= flag;
            bytes[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        };
        if self.caller != Caller::NONE {
            put(CALLER, &self.caller.to_bytes());
        }
        if self.secret != SecretNumber::NONE {
            put(SECRET, &self.secret.to_u32().to_be_bytes());
        }
        if self.origin != Origin::new(self.caller, self.secret) {
            put(ORIGIN, &self.origin.caller.to_bytes());
            put(ORIGIN, &self.origin.secret.to_u32().to_be_bytes());
        }
        if let Some(trace) = self.trace {
            put(TRACE, &trace.to_bytes());
        }
        if self.lease != USUAL_LEASE {
            put(LEASE, &self.lease.to_be_bytes());
        }
        (layout, join(key, &bytes[..end]))
    }

    /// Returns how many bytes they take.
    pub(in crate::store::memory) fn bytes(&self) -> usize {
        let parts = [
            (self.caller != Caller::NONE, Caller::LENGTH),
            (self.secret != SecretNumber::NONE, SECRET_BYTES),
            (self.origin != Origin::new(self.caller, self.secret), Caller::LENGTH + SECRET_BYTES),
            (self.trace.is_some(), TraceContext::LENGTH),
            (self.lease != USUAL_LEASE, LEASE_BYTES),
        ];
        parts.into_iter().map(|(there, length)| if there { length } else { 0 }).sum()
    }
}

impl Layout {
    /// Returns the layout of a key without marks.
    pub(in crate::store::memory) fn of_key(key: &[u8]) -> Self {
        Self(u16::try_from(key.len()).unwrap_or(KEY) & KEY)
    }

    /// Returns the length of the key.
    pub(in crate::store::memory) fn key_bytes(self) -> usize {
        usize::from(self.0 & KEY)
    }

    /// Returns where the payload begins.
    pub(in crate::store::memory) fn payload_from(self) -> usize {
        let part = |flag: u16, length: usize| if self.0 & flag == 0 { 0 } else { length };
        self.key_bytes()
            + part(CALLER, Caller::LENGTH)
            + part(SECRET, SECRET_BYTES)
            + part(ORIGIN, Caller::LENGTH + SECRET_BYTES)
            + part(TRACE, TraceContext::LENGTH)
            + part(LEASE, LEASE_BYTES)
    }

    /// Reads the marks behind the key.
    pub(in crate::store::memory) fn optional_fields(self, text: &[u8]) -> OptionalFields {
        if self.0 & !KEY == 0 {
            return OptionalFields::NONE;
        }
        let mut rest = text.get(self.key_bytes()..).unwrap_or_default();
        let caller = self.read(CALLER, &mut rest).map_or(Caller::NONE, Caller::from_bytes);
        let secret = self.read(SECRET, &mut rest).map_or(SecretNumber::NONE, number);
        let began = self.read(ORIGIN, &mut rest).map(Caller::from_bytes);
        let origin = match (began, self.read(ORIGIN, &mut rest)) {
            (Some(caller), Some(secret)) => Origin::new(caller, number(secret)),
            _ => Origin::new(caller, secret),
        };
        let trace = self.read(TRACE, &mut rest).map(TraceContext::from_bytes);
        let lease = self.read(LEASE, &mut rest).map_or(USUAL_LEASE, u64::from_be_bytes);
        OptionalFields { caller, secret, origin, trace, lease }
    }

    /// Reads one mark, if the layout has it.
    fn read<const N: usize>(self, flag: u16, rest: &mut &[u8]) -> Option<[u8; N]> {
        if self.0 & flag == 0 {
            return None;
        }
        let (part, behind) = rest.split_first_chunk()?;
        *rest = behind;
        Some(*part)
    }
}

fn number(bytes: [u8; SECRET_BYTES]) -> SecretNumber {
    SecretNumber::from_u32(u32::from_be_bytes(bytes))
}

/// Joins two texts in one allocation.
pub(in crate::store::memory) fn join(front: &[u8], back: &[u8]) -> Box<[u8]> {
    let mut joined = Vec::with_capacity(front.len() + back.len());
    joined.extend_from_slice(front);
    joined.extend_from_slice(back);
    joined.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written() {
        let callers = [Caller::NONE, Caller::from_parts(1, [7; 16]), Caller::from_parts(2, [0; 16])];
        let secrets = [0, 1, u32::MAX].map(SecretNumber::from_u32);
        let rest = [None, Some(TraceContext::new([1; 16], [2; 8], 1))]
            .map(|trace| [0, USUAL_LEASE, u64::MAX].map(|lease| (trace, lease)));
        for key in [vec![], vec![b'k'; 769]] {
            for (caller, other) in callers.into_iter().flat_map(|caller| callers.map(|other| (caller, other))) {
                for (secret, number) in secrets.into_iter().flat_map(|secret| secrets.map(|number| (secret, number))) {
                    for (trace, lease) in rest.into_iter().flatten() {
                        let optional_fields =
                            OptionalFields { caller, secret, origin: Origin::new(other, number), trace, lease };
                        let (layout, text) = optional_fields.write(&key);
                        assert!(layout.optional_fields(&text) == optional_fields);
                        assert_eq!((layout.key_bytes(), &text[..key.len()]), (key.len(), &*key));
                        assert_eq!(layout.payload_from(), text.len());
                        assert_eq!(text.len(), key.len() + optional_fields.bytes());
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_takes_no_room() {
        let (layout, text) = OptionalFields::NONE.write(b"key");
        assert!(layout == Layout::of_key(b"key") && *text == *b"key");
    }
}
