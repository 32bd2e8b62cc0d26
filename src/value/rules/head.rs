use crate::value::{
    Binding, Caller, Claim, Claimant, Fingerprint, Granted, Origin, Record, SecretNumber, State, time::millis,
};

/// The part of an existing record that decides about a claim. Times are milliseconds of the store's own clock.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecordHead<'a> {
    /// The state of the record.
    pub state: State,
    /// The last claimant.
    pub claimant: Claimant,
    /// The number of times that the record was claimed.
    pub attempt: u32,
    /// The fingerprint of the last claim.
    pub fingerprint: Fingerprint,
    /// The caller.
    pub caller: Caller,
    /// Whether the last claim brought the caller: the record had none before.
    pub caller_is_new: bool,
    /// The number of the secret that the fingerprint and the caller are made with.
    pub secret: SecretNumber,
    /// The origin of the operation.
    pub origin: Origin,
    /// Whether the last claim is never taken over.
    pub at_most_once: bool,
    /// Whether the last claim was a takeover.
    pub takeover: bool,
    /// For a running record, the time at which the lease lapses.
    pub lease_ends: u64,
    /// The time at which the record expires.
    pub expires: u64,
    /// The binding of a token.
    pub binding: Option<&'a Binding>,
}

impl RecordHead<'_> {
    /// Creates the head of a record without fingerprint, caller, lease, expiry and binding, for stores to fill in.
    #[must_use]
    pub fn new(state: State, claimant: Claimant, attempt: u32) -> Self {
        Self {
            state,
            claimant,
            attempt,
            fingerprint: Fingerprint::OFF,
            caller: Caller::NONE,
            caller_is_new: false,
            secret: SecretNumber::NONE,
            origin: Origin::NONE,
            at_most_once: false,
            takeover: false,
            lease_ends: 0,
            expires: u64::MAX,
            binding: None,
        }
    }

    /// Returns what its claimant was granted.
    pub(super) fn granted(&self) -> Granted {
        Granted {
            attempt: self.attempt,
            takeover: self.takeover,
            origin: self.origin,
            caller_is_new: self.caller_is_new,
        }
    }

    /// Returns what the next claim, whose caller is `caller`, is granted.
    pub(super) fn next(&self, claim: &Claim, caller: Caller, takeover: bool) -> Granted {
        Granted {
            attempt: self.attempt.saturating_add(1),
            takeover,
            origin: if self.attempt == 0 { claim.origin() } else { self.origin },
            caller_is_new: self.caller == Caller::NONE && caller != Caller::NONE,
        }
    }
}

impl<'a> From<&'a Record> for RecordHead<'a> {
    /// Returns the head of a record at the moment when it was read, which is time 0.
    fn from(record: &'a Record) -> Self {
        Self {
            fingerprint: record.fingerprint,
            caller: record.caller,
            caller_is_new: record.caller_is_new,
            secret: record.secret,
            origin: record.origin,
            at_most_once: record.at_most_once,
            takeover: record.takeover,
            lease_ends: millis(record.lease_left),
            expires: millis(record.expires_in),
            binding: record.binding.as_ref(),
            ..Self::new(record.state, record.claimant, record.attempt)
        }
    }
}

impl From<&RecordHead<'_>> for Record {
    /// Creates a record with what is in its head. Times, payload, note and trace remain to be filled in.
    fn from(head: &RecordHead<'_>) -> Self {
        Self {
            fingerprint: head.fingerprint,
            caller: head.caller,
            caller_is_new: head.caller_is_new,
            secret: head.secret,
            origin: head.origin,
            at_most_once: head.at_most_once,
            takeover: head.takeover,
            binding: head.binding.cloned(),
            ..Self::new(head.state, head.claimant, head.attempt)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_and_its_head_hold_the_same() {
        let binding = Binding::new("order", Some("ann"));
        let head = RecordHead {
            fingerprint: Fingerprint::from_parts(1, [1; 32]),
            caller: Caller::from_parts(1, [2; 16]),
            caller_is_new: true,
            secret: SecretNumber::from_u32(3),
            origin: Origin::new(Caller::from_parts(1, [4; 16]), SecretNumber::from_u32(5)),
            at_most_once: true,
            takeover: true,
            binding: Some(&binding),
            ..RecordHead::new(State::Running, Claimant::random(), 6)
        };
        let parts = |head: &RecordHead<'_>| {
            let run = (head.state, head.claimant, head.attempt, head.at_most_once, head.takeover);
            let asked = (head.fingerprint, head.caller, head.caller_is_new, head.secret, head.origin);
            (run, asked, head.binding.cloned())
        };
        assert_eq!(parts(&RecordHead::from(&Record::from(&head))), parts(&head));
    }
}
