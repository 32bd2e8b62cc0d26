use crate::store::{Caller, Claim, Claimed, Mismatch, Origin, State};

use super::{
    expect::{done, grant, granted, holds, is, taken_over, untouched},
    lab::{LONG, Lab, ann, bob, claim, content, key, lapsed, release, settlement, strangers, token_claim},
    rule::rules,
};

rules!["callers":
    a_released_record_belongs_to_its_caller,
    a_released_record_of_nobody_is_free_for_anybody,
    a_released_token_belongs_to_its_caller,
    the_origin_is_the_first_claims,
    the_trace_is_the_last_claims
];

/// Returns a claim without a caller.
fn anonymous() -> Claim {
    Claim { caller: Caller::NONE, ..claim() }
}

/// A released record belongs to its caller, whose next request may be another one. A stranger receives a mismatch.
async fn a_released_record_belongs_to_its_caller(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    done("releasing", &store.release(&key, &release(&first)).await);
    let before = store.record("after releasing", &key).await;
    holds("after releasing", &before, &first, first.claimant);
    for (what, stranger) in strangers() {
        let what = format!("{what} after a release");
        is(&what, &store.claim(&key, &stranger).await, &Claimed::Mismatch(Mismatch::Caller));
        untouched(&what, Some(&before), store.inspect(&key).await.as_ref());
    }
    let corrected = Claim { fingerprint: content(1), ..claim() };
    let what = "another fingerprint of the same caller after a release";
    let claimed = store.claim(&key, &corrected).await;
    granted(what, &claimed, 2);
    is(&format!("{what}: a new caller"), &grant(what, &claimed).caller_is_new, &false);
    holds(what, &store.record(what, &key).await, &corrected, corrected.claimant);
}

/// A released record that had no caller is free for anybody, and the next claim's caller owns it from then on.
async fn a_released_record_of_nobody_is_free_for_anybody(lab: &Lab<'_>) {
    let store = lab.store().await;
    for next in [Claim { fingerprint: content(1), ..claim() }, Claim { fingerprint: content(1), ..anonymous() }] {
        let (key, first) = (key(), anonymous());
        let begun = grant("a claim without a caller", &store.claim(&key, &first).await);
        is("a claim without a caller: a new caller", &begun.caller_is_new, &false);
        done("releasing", &store.release(&key, &release(&first)).await);
        let what = format!("a claim of {:?} after the release of a claim without a caller", next.caller);
        let claimed = store.claim(&key, &next).await;
        granted(&what, &claimed, 2);
        is(&format!("{what}: a new caller"), &grant(&what, &claimed).caller_is_new, &(next.caller != Caller::NONE));
        let record = store.record(&what, &key).await;
        is(&format!("{what}: a new caller in the record"), &record.caller_is_new, &(next.caller != Caller::NONE));
        holds(&what, &record, &next, next.claimant);
        done("releasing once more", &store.release(&key, &release(&next)).await);
        let bobs = store.claim(&key, &Claim { caller: bob(), ..claim() }).await;
        let foreign = bobs == Claimed::Mismatch(Mismatch::Caller);
        is(&format!("{what}, and released: whether it is closed to others"), &foreign, &(next.caller == ann()));
    }
}

/// A token that was claimed and released is the caller's that claimed it.
async fn a_released_token_belongs_to_its_caller(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), token_claim());
    store.issue(&key, LONG).await;
    let claimed = grant("a claim on a token", &store.claim(&key, &first).await);
    is("a claim on a token: a new caller", &claimed.caller_is_new, &true);
    done("releasing", &store.release(&key, &release(&first)).await);
    let before = store.record("a released token", &key).await;
    for (what, stranger) in strangers() {
        let stranger = Claim { issued: first.issued.clone(), ..stranger };
        let what = format!("{what}, on a released token");
        is(&what, &store.claim(&key, &stranger).await, &Claimed::Mismatch(Mismatch::Caller));
        untouched(&what, Some(&before), store.inspect(&key).await.as_ref());
    }
    granted(
        "the caller's next claim",
        &store.claim(&key, &Claim { fingerprint: content(1), ..token_claim() }).await,
        2,
    );
}

/// The origin is what the first claim of a record brought, whatever later claims bring and however they end. Duplicates
/// receive it too.
async fn the_origin_is_the_first_claims(lab: &Lab<'_>) {
    let store = lab.store().await;
    for first in [anonymous(), Claim { caller: ann(), ..claim() }] {
        let (key, origin) = (key(), first.origin());
        let begun = grant("the first claim", &store.claim(&key, &first).await);
        is("the first claim: origin", &begun.origin, &origin);
        let shown = async |what: &'static str| {
            let record = store.record(what, &key).await;
            is(&format!("{what}: origin"), &record.origin, &origin);
        };
        shown("after the first claim").await;
        done("releasing", &store.release(&key, &release(&first)).await);
        shown("after releasing").await;
        let second = Claim { fingerprint: content(1), ..lapsed() };
        let claimed = store.claim(&key, &second).await;
        granted("a second claim", &claimed, 2);
        is("a second claim: origin", &grant("a second claim", &claimed).origin, &origin);
        is("the same claim once more", &store.claim(&key, &second).await, &claimed);
        shown("after a second claim").await;
        let third = Claim { fingerprint: content(1), ..claim() };
        let claimed = store.claim(&key, &third).await;
        taken_over("a takeover", &claimed, 3);
        is("a takeover: origin", &grant("a takeover", &claimed).origin, &origin);
        shown("after a takeover").await;
        store.renew(&key, &third).await;
        shown("after renewing").await;
        done("settling", &store.settle(&key, &settlement(&third, b"kept")).await);
        shown("after settling").await;
        // Twice, since one that keeps copies has none the first time.
        for what in ["a duplicate", "another duplicate"] {
            let told = store.claim(&key, &Claim { fingerprint: content(1), ..claim() }).await;
            is(what, &told, &Claimed::Settled(Some("kept".into()), origin));
        }
        let listed = super::operators::everything(&store, crate::store::Filter::State(State::Settled), 100).await;
        let listed: Vec<_> = listed.into_iter().filter(|entry| entry.key == key).map(|e| e.record.origin).collect();
        is("the origin as it is listed", &listed, &vec![origin]);
    }
    let (token, first) = (super::lab::key(), token_claim());
    store.issue(&token, LONG).await;
    is("the origin of a token", &store.record("a token", &token).await.origin, &Origin::NONE);
    let claimed = grant("a claim on a token", &store.claim(&token, &first).await);
    is("a claim on a token: origin", &claimed.origin, &first.origin());
    done("releasing the token", &store.release(&token, &release(&first)).await);
    is("the origin of a released token", &store.record("a token", &token).await.origin, &first.origin());
}

/// The trace is the last claim's, with or without one, and survives settling and releasing.
async fn the_trace_is_the_last_claims(lab: &Lab<'_>) {
    let store = lab.store().await;
    let other = Some(crate::store::TraceContext::new([1; 16], [2; 8], 0));
    let key = key();
    for (attempt, trace) in [(1, claim().trace), (2, other), (3, None), (4, other)] {
        let next = Claim { trace, ..claim() };
        granted("a claim", &store.claim(&key, &next).await, attempt);
        is("after a claim: trace", &store.record("after a claim", &key).await.trace, &trace);
        store.renew(&key, &Claim { trace: claim().trace, ..next.clone() }).await;
        is("after renewing: trace", &store.record("after renewing", &key).await.trace, &trace);
        if attempt < 4 {
            done("releasing", &store.release(&key, &release(&next)).await);
        } else {
            done("settling", &store.settle(&key, &settlement(&next, b"kept")).await);
        }
        is("after its end: trace", &store.record("after its end", &key).await.trace, &trace);
    }
}
