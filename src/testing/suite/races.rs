use std::time::Duration;

use crate::store::{Claim, Claimed, Finished, Issued, RecordKey, Renewed};

use super::{
    expect::{done, granted, is, is_granted, replayed, running},
    lab::{LONG, Lab, Probe, at_once, claim, key, lapsed, release, settlement, token_claim},
    rule::rules,
};

rules!["races":
    of_many_claims_exactly_one_is_granted,
    of_many_takeovers_exactly_one_is_granted,
    of_many_claims_on_a_released_key_exactly_one_is_granted,
    of_many_claims_on_a_token_exactly_one_is_granted,
    of_many_issuings_exactly_one_is_done,
    a_late_finisher_and_a_takeover_do_not_both_win,
    of_settling_and_releasing_at_once_exactly_one_is_done,
    a_claim_that_was_dropped_half_way_may_be_repeated
];

/// Of many claims at once exactly one is granted; the others receive the holder.
async fn of_many_claims_exactly_one_is_granted(lab: &Lab<'_>) {
    let handles = [lab.store().await, lab.store().await];
    for _ in 0..5 {
        let winner = race("of claims on a free key", &handles, &key(), (1, false), claim).await;
        is("the winner's lease", &winner.lease, &LONG);
    }
}

/// Of many takeovers at once exactly one is granted; the others receive the holder.
async fn of_many_takeovers_exactly_one_is_granted(lab: &Lab<'_>) {
    let handles = [lab.store().await, lab.store().await];
    for _ in 0..5 {
        let key = key();
        handles[0].claim(&key, &lapsed()).await;
        race("of claims on a lapsed key", &handles, &key, (2, true), claim).await;
    }
}

/// Of many claims on a released key at once exactly one is granted.
async fn of_many_claims_on_a_released_key_exactly_one_is_granted(lab: &Lab<'_>) {
    let handles = [lab.store().await, lab.store().await];
    for _ in 0..5 {
        let (key, first) = (key(), claim());
        handles[0].claim(&key, &first).await;
        handles[0].release(&key, &release(&first)).await;
        race("of claims on a released key", &handles, &key, (2, false), claim).await;
    }
}

/// Of many claims on a token at once exactly one is granted.
async fn of_many_claims_on_a_token_exactly_one_is_granted(lab: &Lab<'_>) {
    let handles = [lab.store().await, lab.store().await];
    for _ in 0..5 {
        let key = key();
        handles[0].issue(&key, LONG).await;
        race("of claims on a token", &handles, &key, (1, false), token_claim).await;
    }
}

/// Of many issuings of one token at once exactly one is done.
async fn of_many_issuings_exactly_one_is_done(lab: &Lab<'_>) {
    let handles = [lab.store().await, lab.store().await];
    for _ in 0..5 {
        let key = key();
        let issuing = (0..16).map(|n| {
            let (store, key) = (handles[n % handles.len()].clone(), key.clone());
            async move { store.issue(&key, LONG).await }
        });
        let outcomes = at_once("issuing", issuing).await;
        let done = outcomes.iter().filter(|outcome| **outcome == Issued::Done).count();
        is("how many issuings at once were done", &done, &1);
    }
}

/// Of a late runner and one that takes over at the same time one wins, and the other sees it.
async fn a_late_finisher_and_a_takeover_do_not_both_win(lab: &Lab<'_>) {
    let (store, other) = (lab.store().await, lab.store().await);
    for n in 0..20 {
        let (key, late, next) = (key(), lapsed(), claim());
        store.claim(&key, &late).await;
        let takeover = tokio::spawn({
            let (other, key, next) = (other.clone(), key.clone(), next.clone());
            async move {
                // Now before the late runner, now after it.
                for _ in 0..n % 2 {
                    tokio::task::yield_now().await;
                }
                other.claim(&key, &next).await
            }
        });
        let settles = n % 4 < 2;
        let won = if settles {
            matches!(store.settle(&key, &settlement(&late, b"late")).await, Finished::Done)
        } else {
            store.renew(&key, &Claim { lease: LONG, ..late.clone() }).await == Renewed::Done
        };
        let taken = match takeover.await {
            Ok(claimed) => matches!(claimed, Claimed::Granted(_)),
            Err(error) => panic!("a takeover: {error}"),
        };
        let what = if settles { "settling late" } else { "renewing late" };
        assert!(won != taken, "{what}, and a takeover at the same time: won {won}, taken over {taken}");
        let claimant = store.record(what, &key).await.claimant;
        is("the claimant after that", &claimant, if won { &late.claimant } else { &next.claimant });
    }
}

/// Of settling and releasing one claim at the same time exactly one is done.
async fn of_settling_and_releasing_at_once_exactly_one_is_done(lab: &Lab<'_>) {
    let handles = [lab.store().await, lab.store().await];
    for _ in 0..10 {
        let (key, first) = (key(), claim());
        handles[0].claim(&key, &first).await;
        let calls = (0..2).map(|n| {
            let (store, key, first) = (handles[n].clone(), key.clone(), first.clone());
            async move {
                match n {
                    0 => store.settle(&key, &settlement(&first, b"kept")).await,
                    _ => store.release(&key, &release(&first)).await,
                }
            }
        });
        let outcomes = at_once("settling and releasing", calls).await;
        let done = outcomes.iter().filter(|outcome| matches!(outcome, Finished::Done)).count();
        is("how many of settling and releasing were done", &done, &1);
    }
}

/// A claim whose future was dropped may have taken effect or not: repeated, it is granted as the first.
async fn a_claim_that_was_dropped_half_way_may_be_repeated(lab: &Lab<'_>) {
    let store = lab.store().await;
    for _ in 0..10 {
        let (key, first) = (key(), claim());
        // Polled once, and dropped unless it is ready.
        let _ = tokio::time::timeout(Duration::ZERO, store.0.claim(&key, &first)).await;
        granted("a claim that was dropped half-way, repeated", &store.claim(&key, &first).await, 1);
        done("settling it", &store.settle(&key, &settlement(&first, b"kept")).await);
        replayed("a duplicate", &store.claim(&key, &claim()).await, b"kept");
    }
}

/// Claims a key many times at once; returns the one claim that was granted.
async fn race(what: &str, handles: &[Probe], key: &RecordKey, expected: (u32, bool), claim: fn() -> Claim) -> Claim {
    const MANY: usize = 16;
    let racers = (0..MANY).map(|n| {
        let (store, key, claim) = (handles[n % handles.len()].clone(), key.clone(), claim());
        async move { (store.claim(&key, &claim).await, claim) }
    });
    let outcomes = at_once(what, racers).await;
    let winners: Vec<_> =
        outcomes.iter().filter(|(claimed, _)| matches!(claimed, Claimed::Granted(_))).map(|(_, claim)| claim).collect();
    let [winner] = winners[..] else {
        panic!("{what}: {} of {MANY} at once were granted, instead of one", winners.len());
    };
    for (claimed, claim) in &outcomes {
        if claim.claimant == winner.claimant {
            is_granted(what, claimed, expected);
        } else {
            running(what, claimed, winner);
        }
    }
    winner.clone()
}
