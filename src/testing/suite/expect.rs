use std::{fmt::Debug, time::Duration};

use crate::store::{Claim, Claimant, Claimed, Finished, Granted, Record};

/// What a server's clock may be off by between two answers.
const SLACK: Duration = Duration::from_millis(50);

#[track_caller]
pub(super) fn is<T: PartialEq + Debug>(what: &str, got: &T, expected: &T) {
    assert!(got == expected, "{what}: expected {expected:?}, got {got:?}");
}

/// Checks that the claim was granted, and is not a takeover.
#[track_caller]
pub(super) fn granted(what: &str, got: &Claimed, attempt: u32) {
    is_granted(what, got, (attempt, false));
}

#[track_caller]
pub(super) fn taken_over(what: &str, got: &Claimed, attempt: u32) {
    is_granted(what, got, (attempt, true));
}

/// Checks that the claim was granted, with this attempt, which is a takeover or none.
#[track_caller]
pub(super) fn is_granted(what: &str, got: &Claimed, expected: (u32, bool)) {
    let granted = grant(what, got);
    is(&format!("{what}: attempt and takeover"), &(granted.attempt, granted.takeover), &expected);
}

/// Returns what was granted.
#[track_caller]
pub(super) fn grant(what: &str, got: &Claimed) -> Granted {
    match got {
        Claimed::Granted(granted) => *granted,
        other => panic!("{what}: expected Granted, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn running(what: &str, got: &Claimed, first: &Claim) {
    match got {
        Claimed::Running { holder, left } => {
            is(&format!("{what}: the holder"), holder, &first.claimant);
            assert!(
                !left.is_zero() && *left <= first.lease,
                "{what}: the time left should be in (0, {:?}], and is {left:?}",
                first.lease
            );
        }
        other => panic!("{what}: expected Running, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn replayed(what: &str, got: &Claimed, payload: &[u8]) {
    match got {
        Claimed::Settled(Some(kept), _) => {
            let same = kept == payload;
            assert!(same, "{what}: the payload of {} bytes came back as other {} bytes", payload.len(), kept.len());
        }
        other => panic!("{what}: expected Settled with a payload, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn done(what: &str, got: &Finished) {
    assert!(matches!(got, Finished::Done), "{what}: expected Done, got {got:?}");
}

#[track_caller]
pub(super) fn already_done(what: &str, got: &Finished) {
    assert!(matches!(got, Finished::AlreadyDone), "{what}: expected AlreadyDone, got {got:?}");
}

/// Checks that it was refused, with this record to show for it.
#[track_caller]
pub(super) fn refused(what: &str, got: Finished, there: Option<&Record>) {
    match got {
        Finished::Refused(shown) => untouched(&format!("{what}: what it says is there"), there, shown.as_deref()),
        other => panic!("{what}: expected Refused, got {other:?}"),
    }
}

/// Checks that the record is what it was; only its times have gone on.
#[track_caller]
pub(super) fn untouched(what: &str, before: Option<&Record>, after: Option<&Record>) {
    let (before, after) = match (before, after) {
        (None, None) => return,
        (Some(before), Some(after)) => (before, after),
        (None, Some(after)) => panic!("{what}: there should be no record, and there is {after:?}"),
        (Some(before), None) => panic!("{what}: there should be a record, and there is none; it was {before:?}"),
    };
    is(&format!("{what}: state"), &after.state, &before.state);
    is(&format!("{what}: claimant"), &after.claimant, &before.claimant);
    is(&format!("{what}: attempt"), &after.attempt, &before.attempt);
    is(&format!("{what}: fingerprint"), &after.fingerprint, &before.fingerprint);
    is(&format!("{what}: caller"), &after.caller, &before.caller);
    is(&format!("{what}: caller_is_new"), &after.caller_is_new, &before.caller_is_new);
    is(&format!("{what}: secret"), &after.secret, &before.secret);
    is(&format!("{what}: origin"), &after.origin, &before.origin);
    is(&format!("{what}: at_most_once"), &after.at_most_once, &before.at_most_once);
    is(&format!("{what}: takeover"), &after.takeover, &before.takeover);
    is(&format!("{what}: created"), &after.created, &before.created);
    is(&format!("{what}: settled"), &after.settled, &before.settled);
    is(&format!("{what}: payload"), &after.payload, &before.payload);
    is(&format!("{what}: note"), &after.note, &before.note);
    is(&format!("{what}: binding"), &after.binding, &before.binding);
    is(&format!("{what}: trace"), &after.trace, &before.trace);
    within(&format!("{what}: lease_left"), after.lease_left, before.lease_left);
    within(&format!("{what}: expires_in"), after.expires_in, before.expires_in);
}

/// Checks that a time is no longer than it may be.
#[track_caller]
pub(super) fn within(what: &str, got: Duration, most: Duration) {
    assert!(got <= most.saturating_add(SLACK), "{what}: expected at most {most:?}, got {got:?}");
}

/// Checks that a time is as long as another, except for rounding and a slow statement.
#[track_caller]
pub(super) fn near(what: &str, got: Duration, expected: Duration) {
    assert!(got.abs_diff(expected) <= SLACK, "{what}: expected {expected:?}, got {got:?}");
}

/// Checks that the record holds what was claimed.
#[track_caller]
pub(super) fn holds(what: &str, record: &Record, claim: &Claim, claimant: Claimant) {
    is(&format!("{what}: claimant"), &record.claimant, &claimant);
    is(&format!("{what}: fingerprint"), &record.fingerprint, &claim.fingerprint);
    is(&format!("{what}: caller"), &record.caller, &claim.caller);
    is(&format!("{what}: secret"), &record.secret, &claim.secret);
    is(&format!("{what}: at_most_once"), &record.at_most_once, &claim.at_most_once);
    is(&format!("{what}: note"), &record.note, &claim.note);
    is(&format!("{what}: binding"), &record.binding, &claim.issued);
    is(&format!("{what}: trace"), &record.trace, &claim.trace);
}
