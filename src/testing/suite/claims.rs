use std::time::Duration;

use crate::store::{Claim, Claimed, Filter, RecordKey, Release, Settlement, State, StoreErrorKind};

use super::{
    expect::{done, granted, holds, is, replayed, running, taken_over, untouched},
    lab::{LONG, Lab, claim, key, lapsed, named, other_requests, random, release, settlement},
    rule::rules,
};

rules!["claims":
    a_free_key_is_granted,
    a_running_claim_is_not_granted_again,
    ones_own_second_claim_is_recognised,
    other_keys_do_not_collide,
    namespaces_never_meet,
    another_request_is_a_mismatch_while_the_first_runs,
    another_request_is_a_mismatch_once_the_first_has_settled,
    a_large_note_is_kept_whole,
    a_running_claim_survives_traffic_on_other_keys,
    long_keys_and_all_scripts_are_kept,
    huge_durations_do_not_overflow
];

/// A free key is granted with attempt 1, and the record holds what was claimed.
async fn a_free_key_is_granted(lab: &Lab<'_>) {
    let store = lab.store().await;
    for at_most_once in [false, true] {
        let (key, first) = (key(), Claim { at_most_once, ..claim() });
        granted("a claim on a free key", &store.claim(&key, &first).await, 1);
        let record = store.record("after a claim", &key).await;
        is("after a claim: state", &record.state, &State::Running);
        is("after a claim: attempt", &record.attempt, &1);
        is("after a claim: takeover", &record.takeover, &false);
        holds("after a claim", &record, &first, first.claimant);
    }
}

/// A running claim is not granted again: its holder is named, and the time left in (0, lease].
async fn a_running_claim_is_not_granted_again(lab: &Lab<'_>) {
    let (store, other) = (lab.store().await, lab.store().await);
    let (key, first) = (key(), claim());
    store.claim(&key, &first).await;
    let before = store.record("after a claim", &key).await;
    running("a claim on a running key", &store.claim(&key, &claim()).await, &first);
    running("the same through another handle", &other.claim(&key, &claim()).await, &first);
    let longer = Claim { lease: LONG * 2, at_most_once: true, ..claim() };
    running("the same with a longer lease", &store.claim(&key, &longer).await, &first);
    untouched("after claims that were not granted", Some(&before), store.inspect(&key).await.as_ref());
}

/// The claimant's own second claim is granted as it was the first time, whether its lease is alive or has lapsed.
async fn ones_own_second_claim_is_recognised(lab: &Lab<'_>) {
    let store = lab.store().await;
    for claim in [claim(), lapsed(), Claim { at_most_once: true, ..lapsed() }] {
        let key = key();
        granted("the first claim", &store.claim(&key, &claim).await, 1);
        let before = store.record("after a claim", &key).await;
        granted("the same claim once more", &store.claim(&key, &claim).await, 1);
        let after = store.record("after the second claim", &key).await;
        is("after the same claim once more: attempt", &after.attempt, &before.attempt);
        is("after the same claim once more: claimant", &after.claimant, &before.claimant);
    }
    let (key, second) = (key(), claim());
    store.claim(&key, &lapsed()).await;
    let takeover = store.claim(&key, &second).await;
    taken_over("a takeover", &takeover, 2);
    is("the same takeover once more", &store.claim(&key, &second).await, &takeover);
}

/// Another route, scope or key is another record, and no delimiter in a part makes it the same.
async fn other_keys_do_not_collide(lab: &Lab<'_>) {
    let (store, r) = (lab.store().await, random());
    let mut keys = vec![
        named("/a", Some("s"), &r),
        named("/b", Some("s"), &r),
        named("/a", Some("t"), &r),
        named("/a", Some("S"), &r),
        named("/a", Some("s"), &format!("{r}x")),
        named("/a", Some("s"), &format!("{r} ")),
        named("/a", Some("s"), &format!("{r}X")),
        named("/a", None, &r),
        named("/a", Some(""), &r),
        named("/as", None, &r),
        named("/a", None, &format!("s{r}")),
    ];
    for delimiter in [":", "/", "|", ",", "\\", "'", "\"", "%", "_", "*", "{", "}", "\u{1f}", "\0"] {
        keys.push(named(&format!("/a{delimiter}b"), Some("c"), &r));
        keys.push(named("/a", Some(&format!("b{delimiter}c")), &r));
    }
    let claims: Vec<_> = keys.iter().map(|_| claim()).collect();
    for (key, claim) in keys.iter().zip(&claims) {
        granted(&format!("a claim on {}", shown(key)), &store.claim(key, claim).await, 1);
    }
    for (key, first) in keys.iter().zip(&claims) {
        running(&format!("a second claim on {}", shown(key)), &store.claim(key, &claim()).await, first);
    }
}

fn shown(key: &RecordKey) -> String {
    format!("{:?}", (key.route(), key.scope(), key.key()))
}

/// The same key in two namespaces is two records, for every verb.
async fn namespaces_never_meet(lab: &Lab<'_>) {
    let (here, there) = (lab.store().await, lab.elsewhere().await);
    let (key, first, second) = (key(), claim(), claim());
    granted("a claim", &here.claim(&key, &first).await, 1);
    is("inspecting the key in another namespace", &there.inspect(&key).await.is_some(), &false);
    is("forgetting the key in another namespace", &there.forget(&key).await, &false);
    granted("a claim in another namespace", &there.claim(&key, &second).await, 1);
    done("settling there", &there.settle(&key, &settlement(&second, b"there")).await);
    running("a claim here", &here.claim(&key, &claim()).await, &first);
    done("settling here", &here.settle(&key, &settlement(&first, b"here")).await);
    replayed("a duplicate here", &here.claim(&key, &claim()).await, b"here");
    replayed("a duplicate there", &there.claim(&key, &claim()).await, b"there");
    there.claim(&super::lab::key(), &claim()).await;
    is("the number of records here", &here.list(Filter::All, None, 100).await.entries.len(), &1);
    is("stats here: running", &here.stats().await.running, &0);
}

/// A claim with another fingerprint, scheme or caller is a mismatch while the first one runs, and changes nothing. The
/// caller is compared first.
async fn another_request_is_a_mismatch_while_the_first_runs(lab: &Lab<'_>) {
    let store = lab.store().await;
    for (what, other, mismatch) in other_requests() {
        let key = key();
        store.claim(&key, &claim()).await;
        let before = store.record("after a claim", &key).await;
        is(what, &store.claim(&key, &other).await, &Claimed::Mismatch(mismatch));
        untouched(what, Some(&before), store.inspect(&key).await.as_ref());
    }
}

/// A claim with another fingerprint, scheme or caller is a mismatch once the first has settled, never a replay. The
/// caller is compared first.
async fn another_request_is_a_mismatch_once_the_first_has_settled(lab: &Lab<'_>) {
    let store = lab.store().await;
    for (what, other, mismatch) in other_requests() {
        let (key, first) = (key(), claim());
        store.claim(&key, &first).await;
        store.settle(&key, &settlement(&first, b"kept")).await;
        let before = store.record("after settling", &key).await;
        is(what, &store.claim(&key, &other).await, &Claimed::Mismatch(mismatch));
        untouched(what, Some(&before), store.inspect(&key).await.as_ref());
        replayed("a duplicate after that", &store.claim(&key, &claim()).await, b"kept");
    }
}

/// A note may be as large as a request body, and is binary.
async fn a_large_note_is_kept_whole(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let first = Claim { note: every_byte.repeat(1024 * 1024 / 256).into(), ..claim() };
    granted("a claim with a note of 1 MiB", &store.claim(&key, &first).await, 1);
    for ended in [false, true] {
        if ended {
            done("settling", &store.settle(&key, &settlement(&first, b"kept")).await);
        }
        let note = store.record("after a claim", &key).await.note;
        assert!(note == first.note, "a note of {} bytes came back as other {} bytes", first.note.len(), note.len());
    }
}

/// A running claim survives whatever happens under other keys.
async fn a_running_claim_survives_traffic_on_other_keys(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (kept, first) = (key(), claim());
    granted("the first claim", &store.claim(&kept, &first).await, 1);
    for n in 0..100 {
        let (key, other) = (key(), claim());
        match store.0.claim(&key, &other).await {
            Ok(claimed) => granted("a claim on another key", &claimed, 1),
            Err(error) if error.kind() == StoreErrorKind::Full => break,
            Err(error) => panic!("`claim` failed: {error}"),
        }
        match n % 3 {
            0 => done("settling another key", &store.settle(&key, &settlement(&other, b"other")).await),
            1 => done("releasing another key", &store.release(&key, &release(&other)).await),
            _ => {}
        }
    }
    running("a claim after the traffic", &store.claim(&kept, &claim()).await, &first);
    done("settling after the traffic", &store.settle(&kept, &settlement(&first, b"kept")).await);
}

/// The longest keys, and keys in any script, come back whole and stay apart.
async fn long_keys_and_all_scripts_are_kept(lab: &Lab<'_>) {
    let (store, r) = (lab.store().await, random());
    let most = |text: &str| text.repeat(255 / text.len());
    let keys = [
        named(&most("/r"), Some(&most("s")), &format!("{r}{}", "k".repeat(255 - r.len()))),
        named(&most("/订单"), Some(&most("租户")), &format!("{r}{}", "键".repeat((255 - r.len()) / 3))),
        named(&most("/😀"), Some(&most("😀")), &format!("{r}{}", "😀".repeat((255 - r.len()) / 4))),
        named(&"/long".repeat(100), Some(&"long".repeat(100)), &r),
        named(&"/long".repeat(101), Some(&"long".repeat(100)), &r),
        named("/é", Some("é"), &format!("{r}é")),
        named("/e\u{301}", Some("e\u{301}"), &format!("{r}e\u{301}")),
        named("", None, &r),
    ];
    for key in &keys {
        let first = claim();
        granted("a claim", &store.claim(key, &first).await, 1);
        done("settling", &store.settle(key, &settlement(&first, b"kept")).await);
        replayed("a duplicate", &store.claim(key, &claim()).await, b"kept");
    }
    let listed: Vec<_> =
        super::operators::everything(&store, Filter::All, 100).await.into_iter().map(|e| e.key).collect();
    for key in &keys {
        assert!(listed.contains(key), "{} is not listed as it was claimed", shown(key));
    }
    is("the number of records", &listed.len(), &keys.len());
}

/// The longest durations mean "for ever", not an error and not the past.
async fn huge_durations_do_not_overflow(lab: &Lab<'_>) {
    let store = lab.store().await;
    let spans = [Duration::MAX, Duration::from_millis(u64::MAX), Duration::from_secs(u64::from(u32::MAX) * 1000)];
    for span in spans {
        let (kept, freed, token) = (key(), key(), key());
        let first = Claim { lease: span, horizon: span, ..claim() };
        granted("a claim for ever", &store.claim(&kept, &first).await, 1);
        running("a claim on a key claimed for ever", &store.claim(&kept, &claim()).await, &first);
        store.renew(&kept, &first).await;
        running("a claim on a key renewed for ever", &store.claim(&kept, &claim()).await, &first);
        let forever = Settlement { retention: span, ..settlement(&first, b"kept") };
        done("settling for ever", &store.settle(&kept, &forever).await);
        replayed("a duplicate of a request settled for ever", &store.claim(&kept, &claim()).await, b"kept");
        store.changed(&kept, first.claimant, span).await;

        store.claim(&freed, &first).await;
        done("releasing for ever", &store.release(&freed, &Release::new(first.claimant, span)).await);
        granted("a claim on a key released for ever", &store.claim(&freed, &claim()).await, 2);

        is("issuing for ever", &store.issue(&token, span).await, &crate::store::Issued::Done);
        granted("a claim on a token issued for ever", &store.claim(&token, &super::lab::token_claim()).await, 1);
        for key in [kept, freed, token] {
            store.forget(&key).await;
        }
    }
}
