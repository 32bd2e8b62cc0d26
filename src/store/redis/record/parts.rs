//! What follows the payload of few records: a token's binding, the origin, the trace, the note.
//!
//! Byte 24 of the record has a bit for each. They stand in the order of their bits; the note has no length, since it is
//! the last.

use crate::{
    store::support::bytes::{put_text, take, take_text},
    value::{Binding, Caller, Origin, SecretNumber, TraceContext},
};

/// The bits of the parts, in the order in which they stand.
const TOKEN: u8 = 1;
const ORIGIN: u8 = 1 << 1;
const TRACE: u8 = 1 << 2;
const NOTE: u8 = 1 << 3;

/// Stands for the length of a principal that does not exist.
const NO_PRINCIPAL: u32 = u32::MAX;

/// What only few records have, and what therefore follows the payload.
#[derive(Default)]
pub(super) struct Parts<'a> {
    /// Purpose and principal of a token.
    pub(super) binding: Option<Binding>,
    /// The first claim, if it is another than the last one.
    pub(super) origin: Option<Origin>,
    pub(super) trace: Option<TraceContext>,
    /// What the claim brought for reconciliation.
    pub(super) note: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Reads the parts that `bits` says are there; `None` if the bytes are too short.
    pub(super) fn read(bits: u8, bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        let binding = if bits & TOKEN == 0 { None } else { Some(read_binding(&mut rest)?) };
        let origin = if bits & ORIGIN == 0 { None } else { Some(read_origin(&mut rest)?) };
        let trace = if bits & TRACE == 0 { None } else { Some(TraceContext::from_bytes(take(&mut rest)?)) };
        let note = if bits & NOTE == 0 { &rest[..0] } else { rest };
        Some(Self { binding, origin, trace, note })
    }

    /// Returns a bit for each part that is present.
    pub(super) fn bits(&self) -> u8 {
        let there = [
            (TOKEN, self.binding.is_some()),
            (ORIGIN, self.origin.is_some()),
            (TRACE, self.trace.is_some()),
            (NOTE, !self.note.is_empty()),
        ];
        there.into_iter().map(|(bit, is_there)| if is_there { bit } else { 0 }).sum()
    }

    /// Returns all parts except a token's first expiry, which comes before them.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.note.len());
        if let Some(binding) = &self.binding {
            put_text(&mut bytes, binding.purpose.as_bytes());
            match &binding.principal {
                Some(principal) => put_text(&mut bytes, principal.as_bytes()),
                None => bytes.extend_from_slice(&NO_PRINCIPAL.to_be_bytes()),
            }
        }
        if let Some(origin) = &self.origin {
            bytes.extend_from_slice(&origin.caller.to_bytes());
            bytes.extend_from_slice(&origin.secret.to_u32().to_be_bytes());
        }
        if let Some(trace) = self.trace {
            bytes.extend_from_slice(&trace.to_bytes());
        }
        bytes.extend_from_slice(self.note);
        bytes
    }
}

/// Reads purpose and principal behind the first expiry, which only the scripts use.
fn read_binding(rest: &mut &[u8]) -> Option<Binding> {
    let _first_expiry: [u8; 8] = take(rest)?;
    let purpose = read_text(rest)?;
    let principal = match rest.strip_prefix(&NO_PRINCIPAL.to_be_bytes()) {
        Some(behind) => {
            *rest = behind;
            None
        }
        None => Some(read_text(rest)?),
    };
    Some(Binding::new(purpose, principal))
}

/// Reads the caller and the secret of the first claim.
fn read_origin(rest: &mut &[u8]) -> Option<Origin> {
    let caller = Caller::from_bytes(take(rest)?);
    Some(Origin::new(caller, SecretNumber::from_u32(u32::from_be_bytes(take(rest)?))))
}

/// Reads a text that is preceded by its length.
fn read_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_text(rest)?).ok()
}
