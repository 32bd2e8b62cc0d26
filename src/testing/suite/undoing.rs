use std::time::Duration;

use crate::store::{Caller, Claim, Claimed, Finished, Issued, Mismatch, Origin, Release, State};

use super::{
    expect::{already_done, done, grant, granted, is, refused, replayed, taken_over, untouched, within},
    lab::{LONG, Lab, SHORT, ann, binding, bob, claim, content, key, lapsed, release, settlement, token_claim, undo},
    rule::rules,
};

rules!["undoing":
    a_first_claim_that_is_undone_leaves_no_record,
    a_later_claim_that_is_undone_leaves_what_was_before,
    an_undone_claim_leaves_the_record_to_whom_it_belonged,
    an_undone_takeover_leaves_a_released_record,
    a_lapsed_claim_may_be_undone_by_its_claimant,
    undoing_by_another_claimant_changes_nothing,
    undoing_what_has_ended_changes_nothing,
    an_undone_record_kept_for_zero_is_gone_at_once,
    an_undone_token_is_issued_again,
    a_late_copy_of_a_released_claim_is_not_granted;
    waiting:
    an_undone_record_is_gone_after_its_time
];

/// Undoing the first claim removes the record: the key is free for anybody, and undoing it again finds nothing.
async fn a_first_claim_that_is_undone_leaves_no_record(lab: &Lab<'_>) {
    let store = lab.store().await;
    for at_most_once in [false, true] {
        let (key, first) = (key(), Claim { at_most_once, ..claim() });
        store.claim(&key, &first).await;
        done("undoing a first claim", &store.release(&key, &undo(&first)).await);
        untouched("after undoing a first claim", None, store.inspect(&key).await.as_ref());
        refused("undoing it once more", store.release(&key, &undo(&first)).await, None);
        refused("settling it", store.settle(&key, &settlement(&first, b"late")).await, None);
        let next = Claim { caller: bob(), fingerprint: content(1), ..claim() };
        let claimed = store.claim(&key, &next).await;
        granted("anybody's claim after that", &claimed, 1);
        is("anybody's claim after that: origin", &grant("a claim", &claimed).origin, &next.origin());
    }
}

/// Undoing a later claim leaves a released record with the count of before; doing so again returns "done already".
async fn a_later_claim_that_is_undone_leaves_what_was_before(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    let first = claim();
    store.claim(&key, &first).await;
    done("releasing", &store.release(&key, &release(&first)).await);
    let created = store.record("after releasing", &key).await.created;
    for _ in 0..3 {
        let next = claim();
        granted("a claim after the release", &store.claim(&key, &next).await, 2);
        done("undoing it", &store.release(&key, &undo(&next)).await);
        let record = store.record("after undoing it", &key).await;
        let shown = (record.state, record.attempt, record.claimant, record.created);
        is(
            "after undoing it: state, attempt, claimant, created",
            &shown,
            &(State::Released, 1, next.claimant, created),
        );
        is("after undoing it: caller", &(record.caller, record.caller_is_new), &(ann(), false));
        is("after undoing it: origin", &record.origin, &first.origin());
        is("after undoing it: lease left", &record.lease_left, &Duration::ZERO);
        within("after undoing it: expires_in", record.expires_in, LONG);
        already_done("undoing it once more", &store.release(&key, &undo(&next)).await);
        untouched("after undoing it once more", Some(&record), store.inspect(&key).await.as_ref());
    }
}

/// Undoing a claim that brought the caller leaves the record to anybody; undoing another one leaves it to its caller.
async fn an_undone_claim_leaves_the_record_to_whom_it_belonged(lab: &Lab<'_>) {
    let store = lab.store().await;
    for first in [Claim { caller: Caller::NONE, ..claim() }, claim()] {
        let (key, next) = (key(), claim());
        store.claim(&key, &first).await;
        done("releasing", &store.release(&key, &release(&first)).await);
        granted("a claim after the release", &store.claim(&key, &next).await, 2);
        done("undoing it", &store.release(&key, &undo(&next)).await);
        let record = store.record("after undoing it", &key).await;
        is("after undoing it: caller", &(record.caller, record.caller_is_new), &(first.caller, false));
        is("after undoing it: origin", &record.origin, &first.origin());
        let bobs = Claim { caller: bob(), ..claim() };
        let claimed = store.claim(&key, &bobs).await;
        if first.caller == Caller::NONE {
            granted("another caller's claim after that", &claimed, 2);
            is("another caller's claim: origin", &grant("a claim", &claimed).origin, &first.origin());
        } else {
            is("another caller's claim after that", &claimed, &Claimed::Mismatch(Mismatch::Caller));
        }
    }
}

/// Undoing a takeover leaves a released record with the count of the claim that had lapsed.
async fn an_undone_takeover_leaves_a_released_record(lab: &Lab<'_>) {
    let (store, key, next) = (lab.store().await, key(), claim());
    store.claim(&key, &lapsed()).await;
    taken_over("a takeover", &store.claim(&key, &next).await, 2);
    done("undoing it", &store.release(&key, &undo(&next)).await);
    let record = store.record("after undoing it", &key).await;
    is("after undoing it: state, attempt", &(record.state, record.attempt), &(State::Released, 1));
    granted("a claim after that", &store.claim(&key, &claim()).await, 2);
}

/// A claimant that still matches undoes its claim however late it comes.
async fn a_lapsed_claim_may_be_undone_by_its_claimant(lab: &Lab<'_>) {
    let (store, key, late) = (lab.store().await, key(), lapsed());
    store.claim(&key, &late).await;
    done("undoing after the lapse", &store.release(&key, &undo(&late)).await);
    untouched("after undoing", None, store.inspect(&key).await.as_ref());
}

/// Undoing by another claimant is refused, shows what is there, and changes nothing.
async fn undoing_by_another_claimant_changes_nothing(lab: &Lab<'_>) {
    let store = lab.store().await;
    for (what, key, before) in super::endings::grounds(lab).await {
        let what = format!("undoing {what} of another");
        refused(&what, store.release(&key, &undo(&claim())).await, before.as_ref());
        untouched(&what, before.as_ref(), store.inspect(&key).await.as_ref());
    }
}

/// What has settled is not undone, and what was released stays as it is.
async fn undoing_what_has_ended_changes_nothing(lab: &Lab<'_>) {
    let (store, settled, freed, first) = (lab.store().await, key(), key(), claim());
    store.claim(&settled, &first).await;
    done("settling", &store.settle(&settled, &settlement(&first, b"kept")).await);
    let before = store.record("after settling", &settled).await;
    refused("undoing what was settled", store.release(&settled, &undo(&first)).await, Some(&before));
    untouched("after undoing what was settled", Some(&before), store.inspect(&settled).await.as_ref());
    replayed("a duplicate", &store.claim(&settled, &claim()).await, b"kept");
    store.claim(&freed, &first).await;
    done("releasing", &store.release(&freed, &release(&first)).await);
    let before = store.record("after releasing", &freed).await;
    already_done("undoing what was released", &store.release(&freed, &undo(&first)).await);
    untouched("after undoing what was released", Some(&before), store.inspect(&freed).await.as_ref());
}

/// An undone record that is kept for zero is gone at once.
async fn an_undone_record_kept_for_zero_is_gone_at_once(lab: &Lab<'_>) {
    let (store, key, first, next) = (lab.store().await, key(), claim(), claim());
    store.claim(&key, &first).await;
    done("releasing", &store.release(&key, &release(&first)).await);
    store.claim(&key, &next).await;
    done("undoing", &store.release(&key, &Release::undo(next.claimant, Duration::ZERO)).await);
    untouched("after undoing, kept for zero", None, store.inspect(&key).await.as_ref());
}

/// An undone token is issued again, with its first expiry, binding and count. After its only claim it is as if nobody
/// had claimed it.
async fn an_undone_token_is_issued_again(lab: &Lab<'_>) {
    let store = lab.store().await;
    for released in [false, true] {
        let (key, before, first) = (key(), token_claim(), Claim { horizon: LONG * 2, ..token_claim() });
        store.issue(&key, LONG).await;
        if released {
            store.claim(&key, &before).await;
            done("releasing a token", &store.release(&key, &release(&before)).await);
        }
        store.claim(&key, &first).await;
        let back = Release::undo(first.claimant, Duration::ZERO);
        done("undoing a claim on a token", &store.release(&key, &back).await);
        let record = store.record("an undone token", &key).await;
        let shown = (record.state, record.attempt, record.binding.clone());
        is("an undone token: state, attempt, binding", &shown, &(State::Issued, u32::from(released), Some(binding())));
        within("an undone token: expires_in", record.expires_in, LONG);
        let (caller, origin) = if released { (ann(), before.origin()) } else { (Caller::NONE, Origin::NONE) };
        is("an undone token: caller", &(record.caller, record.caller_is_new), &(caller, false));
        is("an undone token: origin", &record.origin, &origin);
        already_done("undoing it once more", &store.release(&key, &back).await);
        untouched("after undoing it once more", Some(&record), store.inspect(&key).await.as_ref());
        is("issuing it", &store.issue(&key, LONG).await, &Issued::Exists);
        is("a late copy of the claim", &store.claim(&key, &first).await, &Claimed::Withdrawn);
        let next = Claim { caller: if released { ann() } else { bob() }, ..token_claim() };
        let claimed = store.claim(&key, &next).await;
        granted("the next claim", &claimed, 1 + u32::from(released));
        let origin = if released { before.origin() } else { next.origin() };
        is("the next claim: origin", &grant("the next claim", &claimed).origin, &origin);
        let late = store.release(&key, &back).await;
        assert!(matches!(late, Finished::Refused(Some(_))), "undoing after the next claim: got {late:?}");
    }
}

/// A copy of a claim that comes after the claim was released is not granted: nobody would run it.
async fn a_late_copy_of_a_released_claim_is_not_granted(lab: &Lab<'_>) {
    let store = lab.store().await;
    for at_most_once in [false, true] {
        let (freed, undone, token) = (key(), key(), key());
        let first = Claim { at_most_once, ..claim() };
        let claim_token = Claim { at_most_once, ..token_claim() };
        store.claim(&freed, &first).await;
        done("releasing", &store.release(&freed, &release(&first)).await);
        let before = claim();
        store.claim(&undone, &before).await;
        done("releasing", &store.release(&undone, &release(&before)).await);
        store.claim(&undone, &first).await;
        done("undoing", &store.release(&undone, &undo(&first)).await);
        store.issue(&token, LONG).await;
        store.claim(&token, &claim_token).await;
        done("releasing", &store.release(&token, &release(&claim_token)).await);
        let cases =
            [("released", freed, &first), ("undone", undone, &first), ("released with its token", token, &claim_token)];
        for (what, key, claim) in cases {
            let what = format!("a late copy of a claim that was {what}");
            let before = store.record(&what, &key).await;
            is(&what, &store.claim(&key, claim).await, &Claimed::Withdrawn);
            untouched(&what, Some(&before), store.inspect(&key).await.as_ref());
        }
    }
}

/// An undone record is kept for as long as was asked for, from then on.
async fn an_undone_record_is_gone_after_its_time(lab: &Lab<'_>) {
    let (store, key, first, next) = (lab.store().await, key(), claim(), claim());
    store.claim(&key, &first).await;
    done("releasing", &store.release(&key, &release(&first)).await);
    store.claim(&key, &next).await;
    done("undoing", &store.release(&key, &Release::undo(next.claimant, SHORT)).await);
    lab.lapse().await;
    untouched("after its time", None, store.inspect(&key).await.as_ref());
    granted("a claim after its time", &store.claim(&key, &Claim { caller: bob(), ..claim() }).await, 1);
}
