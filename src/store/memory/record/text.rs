//! The texts of a record behind its head: key, optional fields, payload.
//!
//! ```text
//! key | namespace | caller | secret | origin (caller, secret) | trace | lease | payload
//! ```
//!
//! Most records have no optional field: a caller without credentials, the usual lease, no trace. The flags of the head
//! say which ones are there, so that absent ones take no byte. The order is fixed; a new field needs a flag, a length in
//! `LENGTHS`, and a place in `write` and `read`.

use crate::value::{Caller, Claim, Granted, Origin, SecretNumber, TraceContext, millis};

const CALLER: u16 = 1 << 8;
const SECRET: u16 = 1 << 9;
const ORIGIN: u16 = 1 << 10;
const TRACE: u16 = 1 << 11;
const LEASE: u16 = 1 << 12;
const NAMESPACE: u16 = 1 << 13;

/// The flags of optional fields.
pub(super) const OPTIONAL: u16 = CALLER | SECRET | ORIGIN | TRACE | LEASE | NAMESPACE;

const NUMBER_BYTES: usize = 4;
const LEASE_BYTES: usize = 8;

/// How long each field is that counts.
const LENGTHS: [(u16, usize); 4] = [
    (CALLER, Caller::LENGTH),
    (SECRET, NUMBER_BYTES),
    (ORIGIN, Caller::LENGTH + NUMBER_BYTES),
    (TRACE, TraceContext::LENGTH),
];

/// The length of all optional fields.
pub(super) const LONGEST: usize =
    NUMBER_BYTES + 2 * (Caller::LENGTH + NUMBER_BYTES) + TraceContext::LENGTH + LEASE_BYTES;

/// The lease of most records, in milliseconds.
const USUAL_LEASE: u64 = 30_000;

/// What a record keeps of its claims but most records lack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct OptionalFields {
    /// The number of the namespace.
    pub(super) namespace: u32,
    /// The caller of the claim.
    pub(super) caller: Caller,
    /// The secret that caller and fingerprint were made with.
    pub(super) secret: SecretNumber,
    /// The first claim of the operation, from which child keys derive.
    pub(super) origin: Origin,
    /// The trace in which the operation began.
    pub(super) trace: Option<TraceContext>,
    /// The length of the lease, in milliseconds.
    pub(super) lease: u64,
}

/// Optional fields as they are written: one behind the other, with the flags of those that are there.
pub(super) struct WrittenFields {
    pub(super) flags: u16,
    bytes: [u8; LONGEST],
    end: usize,
}

impl OptionalFields {
    /// The fields of a record without any.
    pub(super) const NONE: Self = Self {
        namespace: 0,
        caller: Caller::NONE,
        secret: SecretNumber::NONE,
        origin: Origin::NONE,
        trace: None,
        lease: USUAL_LEASE,
    };

    /// Returns the fields of a granted claim.
    #[inline]
    pub(super) fn of(namespace: u32, claim: &Claim, granted: &Granted) -> Self {
        Self {
            namespace,
            caller: claim.caller,
            secret: claim.secret,
            origin: granted.origin,
            trace: claim.trace,
            lease: millis(claim.lease),
        }
    }

    /// Returns which fields are there.
    #[inline]
    pub(super) fn flags(&self) -> u16 {
        let there = [
            (self.namespace != 0, NAMESPACE),
            (self.caller != Caller::NONE, CALLER),
            (self.secret != SecretNumber::NONE, SECRET),
            (self.origin != Origin::new(self.caller, self.secret), ORIGIN),
            (self.trace.is_some(), TRACE),
            (self.lease != USUAL_LEASE, LEASE),
        ];
        there.into_iter().map(|(there, flag)| if there { flag } else { 0 }).sum()
    }

    /// Writes the fields.
    #[inline]
    pub(super) fn write(&self) -> WrittenFields {
        let flags = self.flags();
        let mut written = WrittenFields { flags, bytes: [0; LONGEST], end: 0 };
        if flags != 0 {
            written.put(NAMESPACE, &self.namespace.to_be_bytes());
            written.put(CALLER, &self.caller.to_bytes());
            written.put(SECRET, &self.secret.to_u32().to_be_bytes());
            written.put(ORIGIN, &self.origin.caller.to_bytes());
            written.put(ORIGIN, &self.origin.secret.to_u32().to_be_bytes());
            if let Some(trace) = self.trace {
                written.put(TRACE, &trace.to_bytes());
            }
            written.put(LEASE, &self.lease.to_be_bytes());
        }
        written
    }

    /// Reads the fields that `flags` names from the text behind the key.
    #[inline]
    pub(super) fn read(flags: u16, mut rest: &[u8]) -> Self {
        if flags & OPTIONAL == 0 {
            return Self::NONE;
        }
        let rest = &mut rest;
        let namespace = take(flags & NAMESPACE, rest).map_or(0, u32::from_be_bytes);
        let caller = take(flags & CALLER, rest).map_or(Caller::NONE, Caller::from_bytes);
        let secret = take(flags & SECRET, rest).map_or(SecretNumber::NONE, number);
        let began = take(flags & ORIGIN, rest).map(Caller::from_bytes);
        let origin = match (began, take(flags & ORIGIN, rest)) {
            (Some(caller), Some(secret)) => Origin::new(caller, number(secret)),
            _ => Origin::new(caller, secret),
        };
        let trace = take(flags & TRACE, rest).map(TraceContext::from_bytes);
        let lease = take(flags & LEASE, rest).map_or(USUAL_LEASE, u64::from_be_bytes);
        Self { namespace, caller, secret, origin, trace, lease }
    }
}

impl WrittenFields {
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Appends a field, if it is there.
    fn put(&mut self, flag: u16, part: &[u8]) {
        if self.flags & flag != 0 {
            self.bytes[self.end..self.end + part.len()].copy_from_slice(part);
            self.end += part.len();
        }
    }
}

/// Returns how many bytes the fields take that `flags` names, as they count to `max_bytes`.
#[inline]
pub(super) fn counted_bytes(flags: u16) -> usize {
    if flags & OPTIONAL == 0 {
        return 0;
    }
    LENGTHS.into_iter().map(|(flag, length)| if flags & flag == 0 { 0 } else { length }).sum()
}

/// Returns how many bytes the fields take that `flags` names. A namespace does not count, since it is not the client's;
/// nor does a lease, so that a renewal with another one needs no room.
#[inline]
pub(super) fn bytes(flags: u16) -> usize {
    let lease_bytes = if flags & LEASE == 0 { 0 } else { LEASE_BYTES };
    counted_bytes(flags) + namespace_bytes(flags) + lease_bytes
}

/// Returns the number of the namespace from the text behind the key.
#[inline]
pub(super) fn namespace(flags: u16, behind_key: &[u8]) -> u32 {
    match behind_key.first_chunk() {
        Some(bytes) if flags & NAMESPACE != 0 => u32::from_be_bytes(*bytes),
        _ => 0,
    }
}

fn namespace_bytes(flags: u16) -> usize {
    if flags & NAMESPACE == 0 { 0 } else { NUMBER_BYTES }
}

/// Takes a field, if its flag is set.
fn take<const N: usize>(flag: u16, rest: &mut &[u8]) -> Option<[u8; N]> {
    if flag == 0 {
        return None;
    }
    let (part, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*part)
}

fn number(bytes: [u8; NUMBER_BYTES]) -> SecretNumber {
    SecretNumber::from_u32(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let callers = [Caller::NONE, Caller::from_parts(1, [7; 16]), Caller::from_parts(2, [0; 16])];
        let secrets = [0, 1, u32::MAX].map(SecretNumber::from_u32);
        let rest = [(0, None), (7, Some(TraceContext::new([1; 16], [2; 8], 1)))]
            .map(|(namespace, trace)| [0, USUAL_LEASE, u64::MAX].map(|lease| (namespace, trace, lease)));
        for (caller, other) in callers.into_iter().flat_map(|caller| callers.map(|other| (caller, other))) {
            for (secret, number) in secrets.into_iter().flat_map(|secret| secrets.map(|number| (secret, number))) {
                for (namespace, trace, lease) in rest.into_iter().flatten() {
                    let origin = Origin::new(other, number);
                    let fields = OptionalFields { namespace, caller, secret, origin, trace, lease };
                    let written = fields.write();
                    assert!(OptionalFields::read(written.flags, written.as_bytes()) == fields);
                    assert_eq!(super::namespace(written.flags, written.as_bytes()), namespace);
                    assert_eq!(bytes(written.flags), written.as_bytes().len());
                }
            }
        }
    }

    #[test]
    fn nothing_takes_no_room() {
        let written = OptionalFields::NONE.write();
        assert_eq!((written.flags, written.as_bytes()), (0, &[][..]));
    }
}
