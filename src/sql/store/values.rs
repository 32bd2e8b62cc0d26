//! What is bound to statements, in the order of their placeholders.
//!
//! The order is that of the `.sql` files; `Marks` are the eight values of a claim that occur together in several of
//! them. Durations are bound and never moments: the statement adds them to the database's clock.

use std::time::Duration;

use crate::{
    sql::driver::Value,
    store::Granted,
    value::{self, Caller, Claim, Claimant, Fingerprint, Origin, RecordKey, SecretNumber, TraceContext},
};

use super::{
    namespace::Namespace,
    record_row::{FetchedRecord, word},
};

/// Longer times are reduced to this: four thousand years.
const FOREVER: i64 = 1 << 47;

/// What a claim leaves in a record to identify it, as it is bound to a statement.
pub(in crate::sql) struct Marks {
    claimant: [u8; 16],
    /// The scheme and the digest.
    fingerprint: [u8; 33],
    caller: [u8; Caller::LENGTH],
    secret: SecretNumber,
    origin: ([u8; Caller::LENGTH], SecretNumber),
    caller_is_new: bool,
    trace: Option<[u8; TraceContext::LENGTH]>,
}

impl Marks {
    /// Creates the marks of a granted claim.
    pub(in crate::sql) fn of(claim: &Claim, granted: Granted) -> Self {
        Self {
            claimant: claim.claimant.to_bytes(),
            fingerprint: fingerprint_bytes(claim.fingerprint),
            caller: claim.caller.to_bytes(),
            secret: claim.secret,
            origin: (granted.origin.caller.to_bytes(), granted.origin.secret),
            caller_is_new: granted.caller_is_new,
            trace: claim.trace.map(TraceContext::to_bytes),
        }
    }

    /// Creates the marks of a token that nobody has claimed.
    pub(in crate::sql) fn nobody() -> Self {
        Self {
            claimant: Claimant::NONE.to_bytes(),
            fingerprint: fingerprint_bytes(Fingerprint::OFF),
            caller: Caller::NONE.to_bytes(),
            secret: SecretNumber::NONE,
            origin: (Origin::NONE.caller.to_bytes(), Origin::NONE.secret),
            caller_is_new: false,
            trace: None,
        }
    }

    /// Returns the values in the order of the statements.
    pub(in crate::sql) fn values(&self) -> [Value<'_>; 8] {
        let number = |number: SecretNumber| Value::Int(number.to_u32().into());
        [
            bytes(&self.claimant),
            bytes(&self.fingerprint),
            bytes(&self.caller),
            number(self.secret),
            bytes(&self.origin.0),
            number(self.origin.1),
            Value::Flag(self.caller_is_new),
            Value::Bytes(self.trace.as_ref().map(|trace| &trace[..])),
        ]
    }
}

/// Returns bytes as a value.
pub(in crate::sql) fn bytes(bytes: &[u8]) -> Value<'_> {
    Value::Bytes(Some(bytes))
}

/// Returns a duration from now on, in milliseconds.
pub(in crate::sql) fn time(duration: Duration) -> Value<'static> {
    Value::Int(millis(duration))
}

/// Returns lease and life of a running record.
pub(in crate::sql) fn lease_and_life(claim: &Claim) -> [Value<'static>; 2] {
    [time(claim.lease), time(claim.lifetime())]
}

/// Returns the note; `NULL` if it is empty.
pub(in crate::sql) fn note(claim: &Claim) -> Value<'_> {
    Value::Bytes(Some(&*claim.note).filter(|note| !note.is_empty()))
}

/// Returns the columns by which the store and operators find a record.
pub(in crate::sql) fn names<'a>(space: &'a Namespace, id: &'a [u8], key: &'a RecordKey) -> [Value<'a>; 5] {
    let text = |text| Value::Text(Some(text));
    [bytes(id), text(space.text()), text(key.route()), Value::Text(key.scope()), text(key.key())]
}

/// Returns the values that replace an expired record by a claim.
pub(in crate::sql) fn replace_values<'a>(id: &'a [u8], claim: &'a Claim, marks: &'a Marks) -> Vec<Value<'a>> {
    let once = [Value::Flag(claim.at_most_once)];
    [&marks.values()[..], &once, &lease_and_life(claim), &[note(claim), bytes(id)]].concat()
}

/// Returns the values that assign a record to the claim, if it is still as it was seen.
pub(in crate::sql) fn takeover_values<'a>(
    id: &'a [u8],
    claim: &'a Claim,
    seen: &FetchedRecord,
    granted: Granted,
    marks: &'a Marks,
    holder: &'a [u8],
) -> Vec<Value<'a>> {
    let was = seen.as_record();
    [
        &[Value::Int(granted.attempt.into())][..],
        &marks.values(),
        &[Value::Flag(claim.at_most_once), Value::Flag(granted.takeover)],
        &lease_and_life(claim),
        &[note(claim), bytes(id), Value::Text(Some(word(was.state))), bytes(holder)],
        &[was.attempt.into(), seen.lease_ends, seen.expires].map(Value::Int),
    ]
    .concat()
}

/// Returns the scheme and the digest, as they are in the column.
fn fingerprint_bytes(fingerprint: Fingerprint) -> [u8; 33] {
    let mut bytes = [fingerprint.scheme(); 33];
    bytes[1..].copy_from_slice(fingerprint.digest());
    bytes
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(value::millis(duration)).unwrap_or(FOREVER).min(FOREVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_its_scheme_and_its_digest() {
        let bytes = fingerprint_bytes(Fingerprint::from_parts(3, [7; 32]));
        assert_eq!((bytes[0], &bytes[1..]), (3, &[7; 32][..]));
    }

    #[test]
    fn times_are_bounded() {
        assert_eq!((millis(Duration::MAX), millis(Duration::from_millis(7))), (FOREVER, 7));
    }
}
