use std::time::Duration;

use crate::{
    store::Granted,
    value::{Caller, Claim, Claimant, Fingerprint, RecordKey},
};

use super::{
    driver::Value,
    space::Space,
    stored::{Stored, word},
};

/// Longer times are cut to this: four thousand years.
const FOREVER: i64 = 1 << 47;

/// What a claim leaves in a record to know it by, as bytes.
pub(super) struct Marks {
    pub(super) claimant: [u8; 16],
    /// The scheme and the digest.
    pub(super) fingerprint: [u8; 33],
    pub(super) caller: [u8; 16],
}

impl Marks {
    pub(super) fn of(claim: &Claim) -> Self {
        Self::new(claim.claimant, claim.fingerprint, claim.caller)
    }

    /// Those of a token that nobody has claimed.
    pub(super) fn nobody() -> Self {
        Self::new(Claimant::from_bytes([0; 16]), Fingerprint::OFF, Caller::NONE)
    }

    fn new(claimant: Claimant, fingerprint: Fingerprint, caller: Caller) -> Self {
        let mut bytes = [fingerprint.scheme(); 33];
        bytes[1..].copy_from_slice(fingerprint.digest());
        Self { claimant: claimant.to_bytes(), fingerprint: bytes, caller: caller.to_bytes() }
    }

    pub(super) fn values(&self) -> [Value<'_>; 3] {
        [&self.claimant[..], &self.fingerprint, &self.caller].map(bytes)
    }
}

pub(super) fn bytes(bytes: &[u8]) -> Value<'_> {
    Value::Bytes(Some(bytes))
}

/// A time from now on, in milliseconds.
pub(super) fn time(duration: Duration) -> Value<'static> {
    Value::Int(millis(duration))
}

/// Lease and life of a running record.
pub(super) fn lease_and_life(claim: &Claim) -> [Value<'static>; 2] {
    [time(claim.lease), time(claim.lease.max(claim.horizon))]
}

pub(super) fn note(claim: &Claim) -> Value<'_> {
    Value::Bytes(Some(&*claim.note).filter(|note| !note.is_empty()))
}

/// The columns by which a record is found, by the store and by those who look.
pub(super) fn names<'a>(space: &'a Space, id: &'a [u8], key: &'a RecordKey) -> [Value<'a>; 5] {
    let text = |text| Value::Text(Some(text));
    [bytes(id), text(space.text()), text(key.route()), Value::Text(key.scope()), text(key.key())]
}

/// What puts a claim in the place of a record that has expired.
pub(super) fn over_expired<'a>(id: &'a [u8], claim: &'a Claim, marks: &'a Marks) -> Vec<Value<'a>> {
    let once = [Value::Flag(claim.at_most_once)];
    [&marks.values()[..], &once, &lease_and_life(claim), &[note(claim), bytes(id)]].concat()
}

/// What makes a record the claim's, if it is still as it was seen.
pub(super) fn taken<'a>(
    id: &'a [u8],
    claim: &'a Claim,
    seen: &Stored,
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

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(FOREVER).min(FOREVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_bounded() {
        assert_eq!((millis(Duration::MAX), millis(Duration::from_millis(7))), (FOREVER, 7));
    }
}
