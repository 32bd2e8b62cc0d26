use std::time::Duration;

use crate::store::{Claim, Claimed, Renewed, State};

use super::{
    expect::{done, granted, holds, is, running, taken_over, untouched},
    lab::{LONG, Lab, SHORT, claim, in_time, key, lapsed, other_requests, release, settlement},
    rule::rules,
};

rules!["leases":
    a_zero_lease_has_lapsed,
    a_takeover_raises_the_attempt,
    a_takeover_is_for_the_same_request_only,
    at_most_once_is_never_taken_over,
    a_lapsed_claim_may_be_renewed_by_its_claimant,
    renewing_by_another_claimant_changes_nothing,
    renewing_an_unknown_key_creates_nothing;
    waiting:
    a_lapsed_claim_is_taken_over,
    renewing_prolongs,
    a_running_claim_is_there_past_its_horizon,
    a_lapsed_claim_is_there_until_its_horizon,
    a_lapsed_claim_is_gone_after_its_horizon
];

/// A lease of zero has lapsed; it does not last for ever.
async fn a_zero_lease_has_lapsed(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    granted("a claim with a lease of zero", &store.claim(&key, &lapsed()).await, 1);
    let record = store.record("a claim with a lease of zero", &key).await;
    is("a claim with a lease of zero: time left", &record.lease_left, &Duration::ZERO);
    taken_over("a claim on a key whose lease was zero", &store.claim(&key, &claim()).await, 2);
}

/// Each takeover raises the attempt and is marked as one, and the record is the new claim's.
async fn a_takeover_raises_the_attempt(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    granted("the first claim", &store.claim(&key, &lapsed()).await, 1);
    let created = store.record("after a claim", &key).await.created;
    for attempt in 2..5 {
        let note = bytes::Bytes::from(format!("note {attempt}"));
        let next = Claim { note, ..lapsed() };
        taken_over("a claim on a lapsed key", &store.claim(&key, &next).await, attempt);
        let record = store.record("after a takeover", &key).await;
        is("after a takeover: attempt", &record.attempt, &attempt);
        is("after a takeover: takeover", &record.takeover, &true);
        is("after a takeover: created", &record.created, &created);
        holds("after a takeover", &record, &next, next.claimant);
    }
    let last = claim();
    taken_over("the last claim", &store.claim(&key, &last).await, 5);
    running("a claim after the last takeover", &store.claim(&key, &claim()).await, &last);
}

/// A lapsed claim with another fingerprint, scheme or caller stays a mismatch and is not taken over.
async fn a_takeover_is_for_the_same_request_only(lab: &Lab<'_>) {
    let store = lab.store().await;
    for (what, other, mismatch) in other_requests() {
        let key = key();
        store.claim(&key, &lapsed()).await;
        let before = store.record("after a claim", &key).await;
        is(what, &store.claim(&key, &other).await, &Claimed::Mismatch(mismatch));
        untouched(what, Some(&before), store.inspect(&key).await.as_ref());
    }
}

/// A lapsed claim is never taken over if it, or the claim that finds it, is at most once.
async fn at_most_once_is_never_taken_over(lab: &Lab<'_>) {
    let store = lab.store().await;
    for (first, second) in [(true, false), (false, true), (true, true)] {
        let key = key();
        store.claim(&key, &Claim { at_most_once: first, ..lapsed() }).await;
        let before = store.record("after a claim", &key).await;
        let what = format!("a lapsed claim, at most once as {first}, found by one, at most once as {second}");
        let claimed = store.claim(&key, &Claim { at_most_once: second, ..claim() }).await;
        is(&what, &claimed, &Claimed::OutcomeUnknown);
        untouched(&what, Some(&before), store.inspect(&key).await.as_ref());
    }
}

/// A claimant that still matches renews however late it comes.
async fn a_lapsed_claim_may_be_renewed_by_its_claimant(lab: &Lab<'_>) {
    let store = lab.store().await;
    for at_most_once in [false, true] {
        let (key, late) = (key(), Claim { at_most_once, ..lapsed() });
        store.claim(&key, &late).await;
        let longer = Claim { lease: LONG, ..late };
        is("renewing after the lapse", &store.renew(&key, &longer).await, &Renewed::Done);
        running("a claim on a key renewed after the lapse", &store.claim(&key, &claim()).await, &longer);
        let record = store.record("after renewing", &key).await;
        is("the attempt after renewing", &record.attempt, &1);
        is("the length of the lease after renewing", &record.lease, &LONG);
    }
}

/// Renewing by another claimant, or by one that was taken over or has ended its claim, changes nothing and reports it.
async fn renewing_by_another_claimant_changes_nothing(lab: &Lab<'_>) {
    let store = lab.store().await;
    let longer = |claim: &Claim| Claim { lease: LONG * 2, horizon: LONG * 2, ..claim.clone() };
    let (alive, over, taken, settled, freed) = (key(), key(), key(), key(), key());
    let (late, ended) = (lapsed(), claim());
    store.claim(&alive, &claim()).await;
    store.claim(&over, &lapsed()).await;
    store.claim(&taken, &late).await;
    store.claim(&taken, &claim()).await;
    store.claim(&settled, &ended).await;
    done("settling", &store.settle(&settled, &settlement(&ended, b"kept")).await);
    store.claim(&freed, &ended).await;
    done("releasing", &store.release(&freed, &release(&ended)).await);
    let cases = [
        ("renewing a running claim of another", alive, claim()),
        ("renewing a lapsed claim of another", over, claim()),
        ("renewing a claim that was taken over", taken, late),
        ("renewing a claim that has settled", settled, ended.clone()),
        ("renewing a claim that was released", freed, ended),
    ];
    for (what, key, claim) in cases {
        let before = store.record(what, &key).await;
        is(what, &store.renew(&key, &longer(&claim)).await, &Renewed::Lost);
        untouched(what, Some(&before), store.inspect(&key).await.as_ref());
    }
}

/// Renewing an unknown key reports it and creates nothing.
async fn renewing_an_unknown_key_creates_nothing(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    is("renewing an unknown key", &store.renew(&key, &claim()).await, &Renewed::Lost);
    untouched("renewing an unknown key", None, store.inspect(&key).await.as_ref());
}

/// A claim whose lease has lapsed with time is taken over.
async fn a_lapsed_claim_is_taken_over(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    granted("the first claim", &store.claim(&key, &Claim { lease: SHORT, ..claim() }).await, 1);
    lab.lapse().await;
    let record = store.record("after the lease has lapsed", &key).await;
    is("after the lease has lapsed: abandoned", &record.is_abandoned(), &true);
    taken_over("a claim on a lapsed key", &store.claim(&key, &claim()).await, 2);
}

/// Renewing lets lease and horizon count anew.
async fn renewing_prolongs(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (short, (key, longer, renewed)) = in_time(async |short| {
        let (key, first) = (key(), Claim { lease: short, horizon: short, ..claim() });
        store.claim(&key, &first).await;
        let longer = Claim { lease: LONG, horizon: LONG, ..first };
        let renewed = store.renew(&key, &longer).await;
        (key, longer, renewed)
    })
    .await;
    is("renewing", &renewed, &Renewed::Done);
    lab.pass(short * 3 / 2).await;
    running("a claim after the first lease", &store.claim(&key, &claim()).await, &longer);
}

/// A running record is not absent when its horizon is over, as long as its lease is alive.
async fn a_running_claim_is_there_past_its_horizon(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (key, first) = (key(), Claim { horizon: SHORT, ..claim() });
    store.claim(&key, &first).await;
    lab.lapse().await;
    running("a claim after the horizon, with the lease alive", &store.claim(&key, &claim()).await, &first);
}

/// A lapsed record is there until its horizon: the attempts go on counting.
async fn a_lapsed_claim_is_there_until_its_horizon(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    store.claim(&key, &Claim { lease: SHORT, horizon: LONG, ..claim() }).await;
    lab.lapse().await;
    is("the state after the lapse", &store.record("after the lapse", &key).await.state, &State::Running);
    for (what, other, mismatch) in other_requests() {
        is(what, &store.claim(&key, &other).await, &Claimed::Mismatch(mismatch));
    }
}

/// A lapsed record is gone after its horizon: a claim begins anew, for whatever request.
async fn a_lapsed_claim_is_gone_after_its_horizon(lab: &Lab<'_>) {
    let store = lab.store().await;
    let keys: Vec<_> = other_requests().iter().map(|_| key()).collect();
    for key in &keys {
        store.claim(key, &Claim { horizon: SHORT, at_most_once: true, ..lapsed() }).await;
    }
    lab.lapse().await;
    for (key, (_, other, _)) in keys.iter().zip(other_requests()) {
        untouched("after the horizon", None, store.inspect(key).await.as_ref());
        granted("a claim after the horizon", &store.claim(key, &other).await, 1);
    }
}
