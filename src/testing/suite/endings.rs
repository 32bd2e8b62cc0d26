use std::time::Duration;

use bytes::Bytes;

use crate::store::{Claim, Claimed, Record, Release, Settlement, State};

use super::{
    expect::{already_done, done, granted, holds, is, refused, replayed, running, taken_over, untouched},
    lab::{LONG, Lab, SHORT, claim, in_time, key, lapsed, other_requests, release, settlement},
    rule::rules,
};

rules!["endings":
    a_settled_answer_is_replayed_byte_for_byte,
    a_tombstone_stays_a_tombstone,
    what_was_claimed_survives_settling,
    settling_by_another_claimant_changes_nothing,
    releasing_by_another_claimant_changes_nothing,
    a_late_finisher_hears_what_is_there,
    a_claimant_that_still_matches_may_end_a_lapsed_claim,
    repeating_ones_own_settling_says_so,
    repeating_ones_own_releasing_says_so,
    settling_after_releasing_changes_nothing,
    releasing_after_settling_changes_nothing,
    ending_an_unknown_key_creates_nothing,
    a_released_key_keeps_its_attempts,
    a_retention_of_zero_is_over_at_once,
    a_released_record_kept_for_zero_is_gone_at_once;
    waiting:
    a_settled_record_is_gone_after_its_retention,
    a_settled_record_is_there_until_its_retention,
    a_released_record_is_gone_after_its_time
];

/// A settled answer is replayed byte for byte: empty, binary, and as large as the default limit.
async fn a_settled_answer_is_replayed_byte_for_byte(lab: &Lab<'_>) {
    let (store, other) = (lab.store().await, lab.store().await);
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let payloads = [
        Vec::new(),
        b"\0".to_vec(),
        b"\r\n\r\n $1 \\x00 'quoted' \xc3\x28".to_vec(),
        every_byte.clone(),
        every_byte.repeat(1024 * 1024 / 256),
    ];
    for payload in payloads {
        let (key, first) = (key(), claim());
        store.claim(&key, &first).await;
        let kept = Settlement { payload: Some(Bytes::from(payload.clone())), ..settlement(&first, b"") };
        done("settling", &store.settle(&key, &kept).await);
        for store in [&store, &other, &store] {
            replayed("a duplicate", &store.claim(&key, &claim()).await, &payload);
        }
        let record = store.record("after settling", &key).await;
        assert!(record.payload.is_some_and(|kept| kept == payload), "inspecting shows another payload");
    }
}

/// A tombstone is settled without a payload, and not the same as an empty one.
async fn a_tombstone_stays_a_tombstone(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    let tombstone = Settlement::new(first.claimant, None, LONG);
    done("settling as a tombstone", &store.settle(&key, &tombstone).await);
    is("a duplicate of a tombstone", &store.claim(&key, &claim()).await, &Claimed::Settled(None, claim().origin()));
    is("the same once more", &store.claim(&key, &claim()).await, &Claimed::Settled(None, claim().origin()));
    let record = store.record("a tombstone", &key).await;
    is("a tombstone: state and payload", &(record.state, record.payload), &(State::Settled, None));
}

/// Claimant, attempt, fingerprint, caller, secret, trace and note survive settling, and the times are reported.
async fn what_was_claimed_survives_settling(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    let second = Claim { at_most_once: false, ..claim() };
    store.claim(&key, &lapsed()).await;
    taken_over("a takeover", &store.claim(&key, &second).await, 2);
    let created = store.record("after a takeover", &key).await.created;
    store.settle(&key, &settlement(&second, b"kept")).await;
    let record = store.record("after settling", &key).await;
    is("after settling: state", &record.state, &State::Settled);
    is("after settling: attempt", &record.attempt, &2);
    is("after settling: created", &record.created, &created);
    is("after settling: lease left", &record.lease_left, &Duration::ZERO);
    holds("after settling", &record, &second, second.claimant);
    assert!(record.settled.is_some_and(|at| at >= created), "after settling: settled at {:?}", record.settled);
}

/// Records in every state that a stranger might end.
pub(super) async fn grounds(lab: &Lab<'_>) -> Vec<(&'static str, crate::store::RecordKey, Option<Record>)> {
    let store = lab.store().await;
    let mut grounds = Vec::new();
    for (what, state) in
        [("a running claim", 0), ("a lapsed claim", 1), ("a settled claim", 2), ("a released claim", 3)]
    {
        let key = key();
        let first = if state == 1 { lapsed() } else { claim() };
        store.claim(&key, &first).await;
        match state {
            2 => done("settling", &store.settle(&key, &settlement(&first, b"kept")).await),
            3 => done("releasing", &store.release(&key, &release(&first)).await),
            _ => {}
        }
        let record = store.record(what, &key).await;
        grounds.push((what, key, Some(record)));
    }
    grounds
}

/// Settling by another claimant is refused, shows what is there, and changes nothing.
async fn settling_by_another_claimant_changes_nothing(lab: &Lab<'_>) {
    let store = lab.store().await;
    for (what, key, before) in grounds(lab).await {
        let what = format!("settling {what} of another");
        refused(&what, store.settle(&key, &settlement(&claim(), b"theirs")).await, before.as_ref());
        untouched(&what, before.as_ref(), store.inspect(&key).await.as_ref());
    }
}

/// Releasing by another claimant is refused, shows what is there, and changes nothing.
async fn releasing_by_another_claimant_changes_nothing(lab: &Lab<'_>) {
    let store = lab.store().await;
    for (what, key, before) in grounds(lab).await {
        let what = format!("releasing {what} of another");
        refused(&what, store.release(&key, &release(&claim())).await, before.as_ref());
        untouched(&what, before.as_ref(), store.inspect(&key).await.as_ref());
    }
}

/// A claimant that was taken over cannot end the claim any more, and receives what is there.
async fn a_late_finisher_hears_what_is_there(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    let (late, next) = (lapsed(), claim());
    store.claim(&key, &late).await;
    taken_over("a takeover", &store.claim(&key, &next).await, 2);
    let before = store.record("after a takeover", &key).await;
    refused("settling late", store.settle(&key, &settlement(&late, b"late")).await, Some(&before));
    refused("releasing late", store.release(&key, &release(&late)).await, Some(&before));
    running("a claim after the late ones", &store.claim(&key, &claim()).await, &next);
    done("settling by the claimant that took over", &store.settle(&key, &settlement(&next, b"next")).await);
    let after = store.record("after settling", &key).await;
    refused("settling later still", store.settle(&key, &settlement(&late, b"late")).await, Some(&after));
    replayed("a duplicate", &store.claim(&key, &claim()).await, b"next");
}

/// A claimant that still matches settles and releases however late it comes.
async fn a_claimant_that_still_matches_may_end_a_lapsed_claim(lab: &Lab<'_>) {
    let store = lab.store().await;
    for at_most_once in [false, true] {
        let (kept, freed) = (key(), key());
        let late = Claim { at_most_once, ..lapsed() };
        store.claim(&kept, &late).await;
        done("settling after the lapse", &store.settle(&kept, &settlement(&late, b"kept")).await);
        replayed("a duplicate", &store.claim(&kept, &claim()).await, b"kept");
        store.claim(&freed, &late).await;
        done("releasing after the lapse", &store.release(&freed, &release(&late)).await);
        granted("a claim after the release", &store.claim(&freed, &claim()).await, 2);
    }
}

/// Repeating one's own settling returns "done already", and the record stays as it was.
async fn repeating_ones_own_settling_says_so(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    let kept = settlement(&first, b"kept");
    done("settling", &store.settle(&key, &kept).await);
    let before = store.record("after settling", &key).await;
    already_done("settling once more", &store.settle(&key, &kept).await);
    untouched("after settling once more", Some(&before), store.inspect(&key).await.as_ref());
    replayed("a duplicate", &store.claim(&key, &claim()).await, b"kept");
}

/// Repeating one's own releasing returns "done already", unless the key was claimed since.
async fn repeating_ones_own_releasing_says_so(lab: &Lab<'_>) {
    let (store, key, first, second) = (lab.store().await, key(), claim(), claim());
    store.claim(&key, &first).await;
    done("releasing", &store.release(&key, &release(&first)).await);
    already_done("releasing once more", &store.release(&key, &release(&first)).await);
    granted("a claim after the release", &store.claim(&key, &second).await, 2);
    let before = store.record("after the second claim", &key).await;
    refused("releasing after the next claim", store.release(&key, &release(&first)).await, Some(&before));
    running("a claim after that", &store.claim(&key, &claim()).await, &second);
}

/// Settling what oneself released changes nothing.
async fn settling_after_releasing_changes_nothing(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    done("releasing", &store.release(&key, &release(&first)).await);
    let before = store.record("after releasing", &key).await;
    refused("settling what was released", store.settle(&key, &settlement(&first, b"late")).await, Some(&before));
    untouched("after settling what was released", Some(&before), store.inspect(&key).await.as_ref());
}

/// Releasing what oneself settled changes nothing.
async fn releasing_after_settling_changes_nothing(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    done("settling", &store.settle(&key, &settlement(&first, b"kept")).await);
    let before = store.record("after settling", &key).await;
    refused("releasing what was settled", store.release(&key, &release(&first)).await, Some(&before));
    untouched("after releasing what was settled", Some(&before), store.inspect(&key).await.as_ref());
    replayed("a duplicate", &store.claim(&key, &claim()).await, b"kept");
}

/// Settling and releasing an unknown key is refused and creates nothing.
async fn ending_an_unknown_key_creates_nothing(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    refused("settling an unknown key", store.settle(&key, &settlement(&claim(), b"kept")).await, None);
    untouched("settling an unknown key", None, store.inspect(&key).await.as_ref());
    refused("releasing an unknown key", store.release(&key, &release(&claim())).await, None);
    untouched("releasing an unknown key", None, store.inspect(&key).await.as_ref());
    granted("a claim after that", &store.claim(&key, &claim()).await, 1);
}

/// A released key keeps its attempt count, and claiming it is not a takeover.
async fn a_released_key_keeps_its_attempts(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    for attempt in 1..4 {
        let next = Claim { at_most_once: attempt == 1, ..claim() };
        granted("a claim", &store.claim(&key, &next).await, attempt);
        done("releasing", &store.release(&key, &release(&next)).await);
        let record = store.record("after releasing", &key).await;
        is("after releasing: state", &record.state, &State::Released);
        is("after releasing: attempt", &record.attempt, &attempt);
        is("after releasing: lease left", &record.lease_left, &Duration::ZERO);
    }
}

/// A retention of zero is over at once; it does not last for ever.
async fn a_retention_of_zero_is_over_at_once(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    let gone = Settlement { retention: Duration::ZERO, ..settlement(&first, b"gone") };
    done("settling for a retention of zero", &store.settle(&key, &gone).await);
    untouched("after a retention of zero", None, store.inspect(&key).await.as_ref());
    granted("a claim after a retention of zero", &store.claim(&key, &claim()).await, 1);
}

/// A released record that is kept for zero is gone at once; the attempts begin anew.
async fn a_released_record_kept_for_zero_is_gone_at_once(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    done("releasing", &store.release(&key, &Release::new(first.claimant, Duration::ZERO)).await);
    untouched("after releasing, kept for zero", None, store.inspect(&key).await.as_ref());
    granted("a claim after that", &store.claim(&key, &claim()).await, 1);
}

/// A settled record is gone after its retention: a claim begins anew, for whatever request.
async fn a_settled_record_is_gone_after_its_retention(lab: &Lab<'_>) {
    let store = lab.store().await;
    let keys: Vec<_> = other_requests().iter().map(|_| key()).collect();
    for key in &keys {
        let first = claim();
        store.claim(key, &first).await;
        store.settle(key, &Settlement { retention: SHORT, ..settlement(&first, b"kept") }).await;
    }
    lab.lapse().await;
    for (key, (_, other, _)) in keys.iter().zip(other_requests()) {
        untouched("after the retention", None, store.inspect(key).await.as_ref());
        granted("a claim after the retention", &store.claim(key, &other).await, 1);
    }
}

/// A settled record is there until its retention is over, whatever its lease and horizon were.
async fn a_settled_record_is_there_until_its_retention(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (short, (key, settled)) = in_time(async |short| {
        let (key, first) = (key(), Claim { lease: short, horizon: short, ..claim() });
        store.claim(&key, &first).await;
        let settled = store.settle(&key, &settlement(&first, b"kept")).await;
        (key, settled)
    })
    .await;
    done("settling", &settled);
    lab.pass(short * 3 / 2).await;
    replayed("a duplicate after lease and horizon", &store.claim(&key, &claim()).await, b"kept");
}

/// A released record is gone after the time that it was to be kept, and not before, whatever its lease and horizon
/// were.
async fn a_released_record_is_gone_after_its_time(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (gone, first) = (key(), claim());
    store.claim(&gone, &first).await;
    let (short, (kept, released)) = in_time(async |short| {
        let (key, first) = (key(), Claim { lease: short, horizon: short, ..claim() });
        store.claim(&key, &first).await;
        let released = store.release(&key, &release(&first)).await;
        (key, released)
    })
    .await;
    done("releasing", &released);
    done("releasing for a short time", &store.release(&gone, &Release::new(first.claimant, SHORT)).await);
    lab.pass(short * 3 / 2).await;
    untouched("after its time", None, store.inspect(&gone).await.as_ref());
    granted("a claim after its time", &store.claim(&gone, &claim()).await, 1);
    granted("a claim within its time", &store.claim(&kept, &claim()).await, 2);
}
