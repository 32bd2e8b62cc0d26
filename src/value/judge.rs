use std::time::Duration;

use super::{Binding, Caller, Claim, Claimant, Fingerprint, State};

/// The part of an existing record that decides about a claim. Times are milliseconds of the store's own clock.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Head<'a> {
    /// Where the record stands.
    pub state: State,
    /// Who claimed it last.
    pub claimant: Claimant,
    /// How many times it was claimed.
    pub attempt: u32,
    /// What the last claim asked for.
    pub fingerprint: Fingerprint,
    /// Who asked.
    pub caller: Caller,
    /// The last claim is never taken over.
    pub at_most_once: bool,
    /// The last claim was a takeover.
    pub takeover: bool,
    /// Running: when the lease lapses.
    pub lease_ends: u64,
    /// When the record is gone.
    pub expires: u64,
    /// What a token is bound to.
    pub binding: Option<&'a Binding>,
}

impl Head<'_> {
    /// The head of a record without fingerprint, caller, lease, expiry and binding, for stores to fill in.
    #[must_use]
    pub fn new(state: State, claimant: Claimant, attempt: u32) -> Self {
        Self {
            state,
            claimant,
            attempt,
            fingerprint: Fingerprint::OFF,
            caller: Caller::NONE,
            at_most_once: false,
            takeover: false,
            lease_ends: 0,
            expires: u64::MAX,
            binding: None,
        }
    }
}

/// What [`judge`] says about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The claim is granted: write a running record with this attempt.
    Grant {
        /// The number of this attempt.
        attempt: u32,
        /// A lapsed claim is taken over.
        takeover: bool,
    },
    /// This very claim was granted before, and its answer was lost on the way: nothing to write.
    Granted {
        /// The number of this attempt.
        attempt: u32,
        /// A lapsed claim was taken over.
        takeover: bool,
    },
    /// Another claim runs.
    Running {
        /// Whose claim it is.
        holder: Claimant,
        /// What is left of its lease; more than zero.
        left: Duration,
    },
    /// The operation has ended: answer with what is kept.
    Settled,
    /// The record is of another request or another caller.
    Mismatch(Mismatch),
    /// A claim that must not be taken over has lapsed.
    OutcomeUnknown,
    /// The record should have been issued, and is not there.
    NotIssued,
    /// The record was issued for another purpose or principal, or is none that was issued.
    Foreign,
}

/// What differs between a claim and the record of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mismatch {
    /// The request asks for something else.
    Fingerprint,
    /// The request comes with other credentials.
    Caller,
}

/// Judges a claim against the record that is there. Every path goes through here: a store's claim, a front cache, a
/// takeover.
///
/// `now` is milliseconds of the same clock as the head's times. For running and settled records the fingerprint is
/// checked before the state, so a mistaken request hears of its mistake while the first one still runs.
#[must_use]
pub fn judge(existing: Option<&Head<'_>>, claim: &Claim, now: u64) -> Verdict {
    let Some(head) = existing.filter(|head| head.expires > now) else {
        return match claim.issued {
            Some(_) => Verdict::NotIssued,
            None => Verdict::Grant { attempt: 1, takeover: false },
        };
    };
    if head.binding != claim.issued.as_ref() {
        return Verdict::Foreign;
    }
    if matches!(head.state, State::Issued | State::Released) {
        return Verdict::Grant { attempt: next(head.attempt), takeover: false };
    }
    let running = head.state == State::Running;
    if running && head.claimant == claim.claimant {
        return Verdict::Granted { attempt: head.attempt, takeover: head.takeover };
    }
    if head.fingerprint != claim.fingerprint {
        return Verdict::Mismatch(Mismatch::Fingerprint);
    }
    if head.caller != claim.caller {
        return Verdict::Mismatch(Mismatch::Caller);
    }
    if !running {
        return Verdict::Settled;
    }
    match head.lease_ends.checked_sub(now) {
        Some(left @ 1..) => Verdict::Running { holder: head.claimant, left: Duration::from_millis(left) },
        _ if head.at_most_once || claim.at_most_once => Verdict::OutcomeUnknown,
        _ => Verdict::Grant { attempt: next(head.attempt), takeover: true },
    }
}

fn next(attempt: u32) -> u32 {
    attempt.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000;

    fn claim() -> Claim {
        Claim::new(Duration::from_secs(1), Duration::from_secs(10))
    }

    fn head(state: State) -> Head<'static> {
        Head { lease_ends: NOW + 300, expires: NOW + 5_000, ..Head::new(state, Claimant::random(), 3) }
    }

    #[test]
    fn a_free_key_is_granted() {
        let granted = Verdict::Grant { attempt: 1, takeover: false };
        assert_eq!(judge(None, &claim(), NOW), granted);
        let gone = Head { expires: NOW, ..head(State::Settled) };
        assert_eq!(judge(Some(&gone), &claim(), NOW), granted);
    }

    #[test]
    fn running_settled_released() {
        let running = head(State::Running);
        let left = Duration::from_millis(300);
        assert_eq!(judge(Some(&running), &claim(), NOW), Verdict::Running { holder: running.claimant, left });
        assert_eq!(judge(Some(&head(State::Settled)), &claim(), NOW), Verdict::Settled);
        let released = Head { fingerprint: Fingerprint::from_parts(1, [1; 32]), ..head(State::Released) };
        assert_eq!(judge(Some(&released), &claim(), NOW), Verdict::Grant { attempt: 4, takeover: false });
    }

    #[test]
    fn a_lapsed_claim_is_taken_over_unless_at_most_once() {
        for lease_ends in [0, NOW] {
            let lapsed = Head { lease_ends, ..head(State::Running) };
            assert_eq!(judge(Some(&lapsed), &claim(), NOW), Verdict::Grant { attempt: 4, takeover: true });
            let once = Head { at_most_once: true, ..lapsed };
            assert_eq!(judge(Some(&once), &claim(), NOW), Verdict::OutcomeUnknown);
            let by_claim = Claim { at_most_once: true, ..claim() };
            assert_eq!(judge(Some(&lapsed), &by_claim, NOW), Verdict::OutcomeUnknown);
        }
    }

    #[test]
    fn ones_own_claim_is_recognised_alive_or_lapsed() {
        for lease_ends in [0, NOW + 300] {
            let claim = claim();
            let own = Head { claimant: claim.claimant, lease_ends, takeover: true, ..head(State::Running) };
            assert_eq!(judge(Some(&own), &claim, NOW), Verdict::Granted { attempt: 3, takeover: true });
        }
    }

    #[test]
    fn the_fingerprint_comes_before_the_state() {
        for state in [State::Running, State::Settled] {
            for lease_ends in [0, NOW + 300] {
                let other = Head { fingerprint: Fingerprint::from_parts(1, [1; 32]), lease_ends, ..head(state) };
                assert_eq!(judge(Some(&other), &claim(), NOW), Verdict::Mismatch(Mismatch::Fingerprint));
                let stranger = Head { caller: Caller::from_bytes([1; 16]), lease_ends, ..head(state) };
                assert_eq!(judge(Some(&stranger), &claim(), NOW), Verdict::Mismatch(Mismatch::Caller));
            }
        }
    }

    #[test]
    fn tokens_are_bound_and_must_have_been_issued() {
        let ann = Binding::new("order", Some("ann"));
        let claim = Claim { issued: Some(ann.clone()), ..claim() };
        assert_eq!(judge(None, &claim, NOW), Verdict::NotIssued);
        let mut issued = Head { binding: Some(&ann), attempt: 0, ..head(State::Issued) };
        assert_eq!(judge(Some(&issued), &claim, NOW), Verdict::Grant { attempt: 1, takeover: false });
        for other in [Binding::new("order", Some("bob")), Binding::new("order", None), Binding::new("x", Some("ann"))] {
            for state in [State::Issued, State::Running, State::Settled] {
                let foreign = Head { binding: Some(&other), ..head(state) };
                assert_eq!(judge(Some(&foreign), &claim, NOW), Verdict::Foreign);
            }
        }
        issued.expires = NOW;
        assert_eq!(judge(Some(&issued), &claim, NOW), Verdict::NotIssued);
        assert_eq!(judge(Some(&head(State::Settled)), &claim, NOW), Verdict::Foreign);
    }
}
