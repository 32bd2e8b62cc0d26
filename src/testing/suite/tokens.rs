use std::time::Duration;

use crate::store::{Binding, Claim, Claimed, Finished, Issued, RecordKey, Release, State};

use super::{
    expect::{already_done, done, granted, is, refused, replayed, running, taken_over, untouched, within},
    lab::{LONG, Lab, Probe, SHORT, binding, claim, key, release, settlement, token_claim},
    rule::rules,
};

rules!["tokens":
    a_token_is_issued_once,
    a_token_is_claimed_once,
    a_token_is_bound_to_purpose_and_principal,
    a_claim_without_a_binding_does_not_spend_a_token,
    a_token_that_was_never_issued_is_not_accepted,
    a_key_that_was_not_issued_is_no_token,
    a_released_token_is_issued_again,
    a_token_with_a_life_of_zero_is_gone_at_once,
    an_issued_token_is_not_ended_by_anybody;
    waiting:
    a_token_expires,
    a_claimed_token_outlives_its_first_expiry,
    a_released_token_keeps_its_first_expiry
];

/// A token is issued unless there is a record under its key, which stays as it is.
async fn a_token_is_issued_once(lab: &Lab<'_>) {
    let (store, other) = (lab.store().await, lab.store().await);
    let (token, plain, first) = (key(), key(), token_claim());
    is("issuing a token", &store.issue(&token, LONG).await, &Issued::Done);
    let record = store.record("after issuing", &token).await;
    let shown = (record.state, record.attempt, record.binding.clone());
    is("after issuing: state, attempt, binding", &shown, &(State::Issued, 0, Some(binding())));
    within("after issuing: expires_in", record.expires_in, LONG);
    is("issuing it once more", &other.issue(&token, LONG * 2).await, &Issued::Exists);
    untouched("issuing it once more", Some(&record), store.inspect(&token).await.as_ref());
    granted("a claim on the token", &store.claim(&token, &first).await, 1);
    is("issuing it when it runs", &store.issue(&token, LONG).await, &Issued::Exists);
    done("settling", &store.settle(&token, &settlement(&first, b"kept")).await);
    is("issuing it when it has settled", &store.issue(&token, LONG).await, &Issued::Exists);
    replayed("a duplicate", &store.claim(&token, &token_claim()).await, b"kept");
    store.claim(&plain, &claim()).await;
    is("issuing over a record that is no token's", &store.issue(&plain, LONG).await, &Issued::Exists);
}

/// A token is claimed once: another claim finds it running, then settled.
async fn a_token_is_claimed_once(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), token_claim());
    store.issue(&key, LONG).await;
    granted("a claim on a token", &store.claim(&key, &first).await, 1);
    granted("the same claim once more", &store.claim(&key, &first).await, 1);
    running("another claim on the token", &store.claim(&key, &token_claim()).await, &first);
    done("settling", &store.settle(&key, &settlement(&first, b"spent")).await);
    replayed("a claim on a spent token", &store.claim(&key, &token_claim()).await, b"spent");
    let record = store.record("a spent token", &key).await;
    is("a spent token: binding", &record.binding, &Some(binding()));
}

/// A token issued for another purpose or principal is foreign, whatever its state, and a stranger does not spend it.
async fn a_token_is_bound_to_purpose_and_principal(lab: &Lab<'_>) {
    let (store, key, owner) = (lab.store().await, key(), token_claim());
    store.issue(&key, LONG).await;
    let strangers = [
        ("another principal", Binding::new("checkout", Some("bob"))),
        ("no principal", Binding::new("checkout", None)),
        ("a principal in other letters", Binding::new("checkout", Some("Ann"))),
        ("a principal with a space behind it", Binding::new("checkout", Some("ann "))),
        ("an empty principal", Binding::new("checkout", Some(""))),
        ("another purpose", Binding::new("refund", Some("ann"))),
        ("purpose and principal split elsewhere", Binding::new("checkoutann", Some(""))),
    ];
    for state in [State::Issued, State::Running, State::Settled] {
        match state {
            State::Running => granted("the owner's claim", &store.claim(&key, &owner).await, 1),
            State::Settled => done("settling", &store.settle(&key, &settlement(&owner, b"spent")).await),
            _ => {}
        }
        let before = store.record("the token", &key).await;
        is("the token's state", &before.state, &state);
        for (what, stranger) in &strangers {
            let what = format!("a token that is {state:?}, claimed with {what}");
            let stranger = Claim { issued: Some(stranger.clone()), ..claim() };
            is(&what, &store.claim(&key, &stranger).await, &Claimed::Foreign);
            untouched(&what, Some(&before), store.inspect(&key).await.as_ref());
        }
    }
    replayed("the owner's duplicate", &store.claim(&key, &token_claim()).await, b"spent");
}

/// A claim that brings no binding finds a token foreign and does not spend it.
async fn a_claim_without_a_binding_does_not_spend_a_token(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    store.issue(&key, LONG).await;
    is("a claim without a binding", &store.claim(&key, &claim()).await, &Claimed::Foreign);
    granted("the owner's claim after that", &store.claim(&key, &token_claim()).await, 1);
}

/// A claim that must find an issued record is not granted on an unknown key, and creates nothing.
async fn a_token_that_was_never_issued_is_not_accepted(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    is("a token that was never issued", &store.claim(&key, &token_claim()).await, &Claimed::NotIssued);
    untouched("a token that was never issued", None, store.inspect(&key).await.as_ref());
    is("the same once more", &store.claim(&key, &token_claim()).await, &Claimed::NotIssued);
}

/// A claim that must find an issued record is not granted on one that was claimed without being issued.
async fn a_key_that_was_not_issued_is_no_token(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    is("a running record that was not issued", &store.claim(&key, &token_claim()).await, &Claimed::Foreign);
    done("releasing", &store.release(&key, &release(&first)).await);
    is("a released record that was not issued", &store.claim(&key, &token_claim()).await, &Claimed::Foreign);
}

/// A released token is issued again, for the same binding and with the attempts that it had, however short the
/// release would be remembered.
async fn a_released_token_is_issued_again(lab: &Lab<'_>) {
    let store = lab.store().await;
    for keep in [Duration::ZERO, LONG * 2] {
        let (key, first) = (key(), Claim { horizon: LONG * 2, ..token_claim() });
        store.issue(&key, LONG).await;
        store.claim(&key, &first).await;
        let back = Release::new(first.claimant, keep);
        done("releasing a token", &store.release(&key, &back).await);
        let record = store.record("a released token", &key).await;
        let shown = (record.state, record.attempt, record.binding.clone());
        is("a released token: state, attempt, binding", &shown, &(State::Issued, 1, Some(binding())));
        within("a released token: expires_in", record.expires_in, LONG);
        already_done("releasing it once more", &store.release(&key, &back).await);
        refused("settling it", store.settle(&key, &settlement(&first, b"late")).await, Some(&record));
        is("a claim without a binding", &store.claim(&key, &claim()).await, &Claimed::Foreign);
        is("issuing it", &store.issue(&key, LONG).await, &Issued::Exists);
        granted("the next claim", &store.claim(&key, &token_claim()).await, 2);
    }
}

/// A token with a life of zero is gone at once.
async fn a_token_with_a_life_of_zero_is_gone_at_once(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    is("issuing for a life of zero", &store.issue(&key, Duration::ZERO).await, &Issued::Done);
    is("a claim on it", &store.claim(&key, &token_claim()).await, &Claimed::NotIssued);
}

/// A token that nobody has claimed cannot be settled or released.
async fn an_issued_token_is_not_ended_by_anybody(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    store.issue(&key, LONG).await;
    let before = store.record("a token", &key).await;
    // A store that fills the claimant of an issued record with zeros must not take it for one.
    for stranger in [token_claim(), Claim { claimant: before.claimant, ..token_claim() }] {
        let outcomes = [
            ("settling a token", store.settle(&key, &settlement(&stranger, b"theirs")).await),
            ("releasing a token", store.release(&key, &release(&stranger)).await),
        ];
        for (what, outcome) in outcomes {
            assert!(matches!(outcome, Finished::Refused(Some(_))), "{what}: expected Refused, got {outcome:?}");
            untouched(what, Some(&before), store.inspect(&key).await.as_ref());
        }
    }
}

/// An issued token expires, and may be issued anew then.
async fn a_token_expires(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    store.issue(&key, SHORT).await;
    lab.lapse().await;
    is("a claim on an expired token", &store.claim(&key, &token_claim()).await, &Claimed::NotIssued);
    is("issuing it anew", &store.issue(&key, LONG).await, &Issued::Done);
    granted("a claim on the new token", &store.claim(&key, &token_claim()).await, 1);
}

/// How long a token lives that is claimed before it expires and looked at after that.
const LIFE: Duration = Duration::from_secs(2);

/// Claims a token in time, which may take several tries on a machine that stands still now and then.
async fn claimed_in_time(store: &Probe, claim: &Claim) -> RecordKey {
    for _ in 0..5 {
        let key = key();
        is("issuing", &store.issue(&key, LIFE).await, &Issued::Done);
        match store.claim(&key, claim).await {
            Claimed::NotIssued => {}
            claimed => {
                granted("a claim in time", &claimed, 1);
                return key;
            }
        }
    }
    panic!("tokens that live for {LIFE:?} are not there when they are claimed at once");
}

/// A token that was claimed in time may settle after its expiry, and be taken over after it.
async fn a_claimed_token_outlives_its_first_expiry(lab: &Lab<'_>) {
    let (store, first) = (lab.store().await, token_claim());
    let alive = claimed_in_time(&store, &first).await;
    let over = claimed_in_time(&store, &Claim { lease: Duration::ZERO, ..token_claim() }).await;
    lab.pass(LIFE + SHORT).await;
    running("a claim after the expiry", &store.claim(&alive, &token_claim()).await, &first);
    done("settling after the expiry", &store.settle(&alive, &settlement(&first, b"spent")).await);
    replayed("a duplicate", &store.claim(&alive, &token_claim()).await, b"spent");
    taken_over("a takeover after the expiry", &store.claim(&over, &token_claim()).await, 2);
}

/// A released token keeps its first expiry, whether it is released before or after it.
async fn a_released_token_keeps_its_first_expiry(lab: &Lab<'_>) {
    let (store, first) = (lab.store().await, token_claim());
    let before = claimed_in_time(&store, &first).await;
    let after = claimed_in_time(&store, &first).await;
    done("releasing before the expiry", &store.release(&before, &release(&first)).await);
    lab.pass(LIFE + SHORT).await;
    done("releasing after the expiry", &store.release(&after, &release(&first)).await);
    for (what, key) in [("released before the expiry", before), ("released after the expiry", after)] {
        untouched(what, None, store.inspect(&key).await.as_ref());
        is(what, &store.claim(&key, &token_claim()).await, &Claimed::NotIssued);
    }
}
