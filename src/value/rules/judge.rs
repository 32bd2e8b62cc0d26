use std::time::Duration;

use crate::value::{Caller, Claim, Claimant, Granted, Mismatch, RecordHead, State, Verdict};

/// Judges a claim against the existing record. Every path goes through here: a store's claim, a cache in front, a
/// takeover.
///
/// `now` is milliseconds of the same clock as the head's times. The caller is compared first, in every state, so that a
/// stranger learns nothing of the record. A released record belongs to its caller, whose next request may have another
/// content; one without a caller is free for anybody. For running and settled records the fingerprint is compared
/// before the state, so that a mistaken request learns of its mistake while the first one still runs.
#[must_use]
pub fn judge(existing: Option<&RecordHead<'_>>, claim: &Claim, now: u64) -> Verdict {
    let Some(head) = existing.filter(|head| head.expires > now) else {
        return match claim.issued {
            Some(_) => Verdict::NotIssued,
            None => Verdict::Grant(Granted::first(claim)),
        };
    };
    if head.binding != claim.issued.as_ref() {
        return Verdict::Foreign;
    }
    let ended_without_answer = matches!(head.state, State::Issued | State::Released);
    // A token whose only claim was undone is at attempt 0 again, and still knows whose claim that was.
    if head.claimant == claim.claimant && head.claimant != Claimant::NONE {
        match head.state {
            State::Running => return Verdict::Granted(head.granted()),
            State::Issued | State::Released => return Verdict::Withdrawn,
            State::Settled => {}
        }
    }
    let Some((caller, fingerprint)) = claim.under(head.secret).filter(|_| claim.under(head.origin.secret).is_some())
    else {
        return Verdict::Incompatible;
    };
    if head.caller != caller && !(ended_without_answer && head.caller == Caller::NONE) {
        return Verdict::Mismatch(Mismatch::Caller);
    }
    if ended_without_answer {
        return Verdict::Grant(head.next(claim, caller, false));
    }
    if head.fingerprint != fingerprint {
        return Verdict::Mismatch(Mismatch::Fingerprint);
    }
    if head.state == State::Settled {
        return Verdict::Settled(head.origin);
    }
    match head.lease_ends.checked_sub(now) {
        Some(left @ 1..) => Verdict::Running { holder: head.claimant, left: Duration::from_millis(left) },
        _ if head.at_most_once || claim.at_most_once => Verdict::OutcomeUnknown,
        _ => Verdict::Grant(head.next(claim, caller, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Binding, Fingerprint, Origin, Secret, SecretNumber};

    const NOW: u64 = 1_000;

    fn claim() -> Claim {
        Claim::new(Duration::from_secs(1), Duration::from_secs(10))
    }

    fn by(caller: Caller) -> Claim {
        Claim { caller, ..claim() }
    }

    fn ann() -> Caller {
        Caller::from_parts(1, [1; 16])
    }

    fn bob() -> Caller {
        Caller::from_parts(1, [2; 16])
    }

    fn other_content() -> Fingerprint {
        Fingerprint::from_parts(1, [1; 32])
    }

    fn head(state: State) -> RecordHead<'static> {
        RecordHead { lease_ends: NOW + 300, expires: NOW + 5_000, ..RecordHead::new(state, Claimant::random(), 3) }
    }

    fn granted(attempt: u32, takeover: bool) -> Verdict {
        Verdict::Grant(Granted { attempt, takeover, origin: Origin::NONE, caller_is_new: false })
    }

    #[test]
    fn a_free_key_is_granted() {
        assert_eq!(judge(None, &claim(), NOW), granted(1, false));
        let gone = RecordHead { expires: NOW, caller: ann(), ..head(State::Settled) };
        assert_eq!(judge(Some(&gone), &claim(), NOW), granted(1, false));
    }

    #[test]
    fn running_settled_released() {
        let running = head(State::Running);
        let left = Duration::from_millis(300);
        assert_eq!(judge(Some(&running), &claim(), NOW), Verdict::Running { holder: running.claimant, left });
        assert_eq!(judge(Some(&head(State::Settled)), &claim(), NOW), Verdict::Settled(Origin::NONE));
        let released = RecordHead { fingerprint: other_content(), ..head(State::Released) };
        assert_eq!(judge(Some(&released), &claim(), NOW), granted(4, false));
    }

    #[test]
    fn a_lapsed_claim_is_taken_over_unless_at_most_once() {
        for lease_ends in [0, NOW] {
            let lapsed = RecordHead { lease_ends, ..head(State::Running) };
            assert_eq!(judge(Some(&lapsed), &claim(), NOW), granted(4, true));
            let once = RecordHead { at_most_once: true, ..lapsed };
            assert_eq!(judge(Some(&once), &claim(), NOW), Verdict::OutcomeUnknown);
            let by_claim = Claim { at_most_once: true, ..claim() };
            assert_eq!(judge(Some(&lapsed), &by_claim, NOW), Verdict::OutcomeUnknown);
        }
    }

    #[test]
    fn ones_own_claim_is_recognised_alive_or_lapsed() {
        for lease_ends in [0, NOW + 300] {
            let claim = claim();
            let own = RecordHead { claimant: claim.claimant, lease_ends, takeover: true, ..head(State::Running) };
            assert_eq!(judge(Some(&own), &claim, NOW), Verdict::Granted(own.granted()));
        }
    }

    #[test]
    fn a_late_copy_of_a_released_claim_is_not_granted() {
        let claim = claim();
        for state in [State::Released, State::Issued] {
            let own = RecordHead { claimant: claim.claimant, ..head(state) };
            assert_eq!(judge(Some(&own), &claim, NOW), Verdict::Withdrawn);
        }
    }

    #[test]
    fn the_caller_comes_before_the_fingerprint_and_the_fingerprint_before_the_state() {
        for state in [State::Running, State::Settled] {
            for lease_ends in [0, NOW + 300] {
                let other = RecordHead { fingerprint: other_content(), lease_ends, ..head(state) };
                assert_eq!(judge(Some(&other), &claim(), NOW), Verdict::Mismatch(Mismatch::Fingerprint));
                for fingerprint in [Fingerprint::OFF, other_content()] {
                    let anns = RecordHead { caller: ann(), fingerprint, lease_ends, ..head(state) };
                    for stranger in [by(bob()), claim()] {
                        assert_eq!(judge(Some(&anns), &stranger, NOW), Verdict::Mismatch(Mismatch::Caller));
                    }
                    let nobodys = RecordHead { fingerprint, lease_ends, ..head(state) };
                    assert_eq!(judge(Some(&nobodys), &by(ann()), NOW), Verdict::Mismatch(Mismatch::Caller));
                }
            }
        }
    }

    #[test]
    fn a_released_record_belongs_to_its_caller() {
        let origin = Origin::new(ann(), SecretNumber::NONE);
        let anns = RecordHead { caller: ann(), origin, fingerprint: other_content(), ..head(State::Released) };
        for stranger in [by(bob()), claim()] {
            assert_eq!(judge(Some(&anns), &stranger, NOW), Verdict::Mismatch(Mismatch::Caller));
        }
        let next = Granted { attempt: 4, takeover: false, origin, caller_is_new: false };
        assert_eq!(judge(Some(&anns), &by(ann()), NOW), Verdict::Grant(next));
    }

    #[test]
    fn a_released_record_of_nobody_is_free_for_anybody_and_keeps_its_origin() {
        let nobodys = head(State::Released);
        let next = Granted { attempt: 4, takeover: false, origin: Origin::NONE, caller_is_new: true };
        assert_eq!(judge(Some(&nobodys), &by(ann()), NOW), Verdict::Grant(next));
        assert_eq!(judge(Some(&nobodys), &claim(), NOW), granted(4, false));
    }

    #[test]
    fn a_record_is_compared_under_its_own_secret() {
        let (old, new) = (Secret::new([1; 32]).unwrap(), Secret::new([2; 32]).unwrap());
        let asked = || Claim { fingerprint: other_content(), ..by(ann()) };
        let first = asked().sealed_with(&old);
        let settled = RecordHead {
            caller: first.caller,
            fingerprint: first.fingerprint,
            secret: first.secret,
            origin: first.origin(),
            ..head(State::Settled)
        };
        let both = new.clone().accept([1; 32]).unwrap();
        assert_eq!(judge(Some(&settled), &asked().sealed_with(&both), NOW), Verdict::Settled(first.origin()));
        let bobs = Claim { caller: bob(), ..asked() }.sealed_with(&both);
        assert_eq!(judge(Some(&settled), &bobs, NOW), Verdict::Mismatch(Mismatch::Caller));
        for without in [asked().sealed_with(&new), asked()] {
            assert_eq!(judge(Some(&settled), &without, NOW), Verdict::Incompatible);
        }
        // What was made before there was a secret is still compared.
        let plain = RecordHead { caller: ann(), fingerprint: other_content(), ..head(State::Settled) };
        assert_eq!(judge(Some(&plain), &asked().sealed_with(&new), NOW), Verdict::Settled(Origin::NONE));
    }

    #[test]
    fn a_record_whose_origin_needs_a_missing_secret_is_incompatible() {
        let old = Secret::new([1; 32]).unwrap();
        let released = RecordHead { origin: Origin::new(ann(), old.number()), caller: ann(), ..head(State::Released) };
        assert_eq!(judge(Some(&released), &by(ann()), NOW), Verdict::Incompatible);
    }

    #[test]
    fn tokens_are_bound_and_must_have_been_issued() {
        let ann = Binding::new("order", Some("ann"));
        let claim = Claim { issued: Some(ann.clone()), ..claim() };
        assert_eq!(judge(None, &claim, NOW), Verdict::NotIssued);
        let mut issued = RecordHead { binding: Some(&ann), attempt: 0, ..head(State::Issued) };
        assert_eq!(judge(Some(&issued), &claim, NOW), granted(1, false));
        for other in [Binding::new("order", Some("bob")), Binding::new("order", None), Binding::new("x", Some("ann"))] {
            for state in [State::Issued, State::Running, State::Settled] {
                let foreign = RecordHead { binding: Some(&other), ..head(state) };
                assert_eq!(judge(Some(&foreign), &claim, NOW), Verdict::Foreign);
            }
        }
        issued.expires = NOW;
        assert_eq!(judge(Some(&issued), &claim, NOW), Verdict::NotIssued);
        assert_eq!(judge(Some(&head(State::Settled)), &claim, NOW), Verdict::Foreign);
    }
}
