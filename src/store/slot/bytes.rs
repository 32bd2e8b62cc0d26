//! The layout of a record for stores that keep it as one string of bytes.

use bytes::Bytes;

use crate::{
    store::support::bytes::{DecodeError, put_text, take, take_text},
    value::{Binding, Caller, Claimant, Fingerprint, Origin, SecretNumber, State, StoredRecord, TraceContext},
};

// A record is: version, state and flags; the numbers and digests that every record has, in the order in which `write`
// writes them; purpose, principal, trace context and the time of settling, if the flags say so; the note behind its
// length; the payload, to the end. Numbers are big-endian. A version that is changed reads the ones before it.

/// The version of this layout.
const VERSION: u8 = 1;

const STATES: [State; 4] = [State::Issued, State::Running, State::Settled, State::Released];

const AT_MOST_ONCE: u8 = 1;
const TAKEOVER: u8 = 1 << 1;
const CALLER_IS_NEW: u8 = 1 << 2;
const PAYLOAD: u8 = 1 << 3;
const TOKEN: u8 = 1 << 4;
const PRINCIPAL: u8 = 1 << 5;
const TRACE: u8 = 1 << 6;
const SETTLED: u8 = 1 << 7;

pub(super) fn write(record: &StoredRecord) -> Vec<u8> {
    let (binding, payload) = (record.binding.as_ref(), record.payload.as_deref());
    let principal = binding.and_then(|binding| binding.principal.as_deref());
    let flags = [
        (AT_MOST_ONCE, record.at_most_once),
        (TAKEOVER, record.takeover),
        (CALLER_IS_NEW, record.caller_is_new),
        (PAYLOAD, payload.is_some()),
        (TOKEN, binding.is_some()),
        (PRINCIPAL, principal.is_some()),
        (TRACE, record.trace.is_some()),
        (SETTLED, record.settled.is_some()),
    ];
    let flags = flags.into_iter().map(|(flag, is_set)| if is_set { flag } else { 0 }).sum();
    let state = STATES.iter().position(|state| *state == record.state).unwrap_or_default();
    let mut bytes = Vec::with_capacity(256 + record.note.len() + payload.map_or(0, <[u8]>::len));
    bytes.extend([VERSION, u8::try_from(state).unwrap_or_default(), flags]);
    bytes.extend(record.claimant.to_bytes());
    bytes.extend(record.attempt.to_be_bytes());
    bytes.push(record.fingerprint.scheme());
    bytes.extend(record.fingerprint.digest());
    for (caller, secret) in [(record.caller, record.secret), (record.origin.caller, record.origin.secret)] {
        bytes.extend(caller.to_bytes());
        bytes.extend(secret.to_u32().to_be_bytes());
    }
    for number in [record.lease, record.lease_ends, record.expires, record.created, record.token_expires] {
        bytes.extend(number.to_be_bytes());
    }
    for text in binding.map(|binding| &*binding.purpose).into_iter().chain(principal) {
        put_text(&mut bytes, text.as_bytes());
    }
    bytes.extend(record.trace.map(TraceContext::to_bytes).into_iter().flatten());
    bytes.extend(record.settled.map(u64::to_be_bytes).into_iter().flatten());
    put_text(&mut bytes, &record.note);
    bytes.extend(payload.unwrap_or_default());
    bytes
}

pub(super) fn read(bytes: &[u8]) -> Result<StoredRecord, DecodeError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => read_current(rest).ok_or(DecodeError::Corrupt),
        Some((&version, _)) if version > VERSION => Err(DecodeError::Newer),
        _ => Err(DecodeError::Corrupt),
    }
}

fn read_current(mut rest: &[u8]) -> Option<StoredRecord> {
    let rest = &mut rest;
    let [state, flags] = take(rest)?;
    let state = *STATES.get(usize::from(state))?;
    let claimant = Claimant::from_bytes(take(rest)?);
    let attempt = u32::from_be_bytes(take(rest)?);
    let [scheme] = take(rest)?;
    let fingerprint = Fingerprint::from_parts(scheme, take(rest)?);
    let last = take_origin(rest)?;
    let origin = take_origin(rest)?;
    let mut number = || take(rest).map(u64::from_be_bytes);
    let (lease, lease_ends, expires, created, token_expires) = (number()?, number()?, number()?, number()?, number()?);
    let has = |flag: u8| flags & flag != 0;
    let mut text = |flag: u8| -> Option<Option<&str>> {
        if has(flag) { Some(Some(std::str::from_utf8(take_text(rest)?).ok()?)) } else { Some(None) }
    };
    let (purpose, principal) = (text(TOKEN)?, text(PRINCIPAL)?);
    let trace = if has(TRACE) { Some(TraceContext::from_bytes(take(rest)?)) } else { None };
    let settled = if has(SETTLED) { Some(u64::from_be_bytes(take(rest)?)) } else { None };
    let note = Bytes::copy_from_slice(take_text(rest)?);
    if !has(PAYLOAD) && !rest.is_empty() {
        return None;
    }
    Some(StoredRecord {
        fingerprint,
        caller: last.caller,
        caller_is_new: has(CALLER_IS_NEW),
        secret: last.secret,
        origin,
        at_most_once: has(AT_MOST_ONCE),
        takeover: has(TAKEOVER),
        lease,
        lease_ends,
        expires,
        created,
        settled,
        payload: has(PAYLOAD).then(|| Bytes::copy_from_slice(rest)),
        note,
        binding: purpose.map(|purpose| Binding::new(purpose, principal)),
        token_expires,
        trace,
        ..StoredRecord::new(state, claimant, attempt)
    })
}

fn take_origin(rest: &mut &[u8]) -> Option<Origin> {
    let caller = Caller::from_bytes(take(rest)?);
    Some(Origin::new(caller, SecretNumber::from_u32(u32::from_be_bytes(take(rest)?))))
}
