use std::{collections::HashMap, time::Duration};

use crate::store::{Claim, Entry, Filter, RecordKey, Release, Renewed, Settlement, State, Stats};

use super::{
    expect::{done, granted, holds, is, near, refused, replayed, running, untouched, within},
    lab::{LONG, Lab, Probe, SHORT, claim, key, lapsed, release, settlement, token_claim},
    rule::rules,
};

rules!["operators":
    inspecting_shows_every_state,
    listing_gives_every_record_in_pages,
    abandoned_records_can_be_told,
    stats_count_by_state,
    what_has_expired_is_neither_listed_nor_counted,
    an_abandoned_record_is_settled_in_its_runners_place,
    an_abandoned_record_is_released_in_its_runners_place,
    what_is_not_abandoned_is_not_reconciled,
    forgetting_removes_whatever_is_there,
    purging_removes_nothing_that_is_alive;
    waiting:
    inspecting_shows_how_long_a_lease_has_lapsed
];

/// Returns all records, page by page.
pub(super) async fn everything(store: &Probe, filter: Filter, limit: usize) -> Vec<Entry> {
    let (mut entries, mut after) = (Vec::new(), None);
    for _ in 0..100_000 {
        let page = store.list(filter, after, limit).await;
        entries.extend(page.entries);
        match page.next {
            Some(next) => after = Some(next),
            None => return entries,
        }
    }
    panic!("listing does not come to an end");
}

/// Creates a record in each state that a stats counter stands for: issued, running, abandoned, settled, released.
async fn one_of_each(store: &Probe) -> [RecordKey; 5] {
    let keys = [key(), key(), key(), key(), key()];
    let [issued, alive, over, settled, freed] = &keys;
    let first = claim();
    store.issue(issued, LONG).await;
    store.claim(alive, &first).await;
    store.claim(over, &lapsed()).await;
    store.claim(settled, &first).await;
    done("settling", &store.settle(settled, &settlement(&first, b"kept")).await);
    store.claim(freed, &first).await;
    done("releasing", &store.release(freed, &release(&first)).await);
    keys
}

/// Inspecting shows a record in every state as it is, and creates none.
async fn inspecting_shows_every_state(lab: &Lab<'_>) {
    let (store, other) = (lab.store().await, lab.store().await);
    untouched("inspecting an unknown key", None, store.inspect(&key()).await.as_ref());
    let states = [State::Issued, State::Running, State::Running, State::Settled, State::Released];
    for (n, key) in one_of_each(&store).await.iter().enumerate() {
        let record = other.record("inspecting", key).await;
        let what = format!("inspecting a record that is {:?}", states[n]);
        is(&format!("{what}: state"), &record.state, &states[n]);
        is(&format!("{what}: attempt"), &record.attempt, &u32::from(n > 0));
        is(&format!("{what}: abandoned"), &record.is_abandoned(), &(n == 2));
        is(&format!("{what}: settled"), &record.settled.is_some(), &(n == 3));
        is(&format!("{what}: payload"), &record.payload.is_some(), &(n == 3));
        is(&format!("{what}: lease"), &!record.lease.is_zero(), &(n == 1));
        is(&format!("{what}: lapsed for"), &(n == 2 || record.lapsed_for.is_zero()), &true);
        is(&format!("{what}: lease left"), &!record.lease_left.is_zero(), &(n == 1));
        within(&format!("{what}: lease left"), record.lease_left, LONG);
        within(&format!("{what}: expires in"), record.expires_in, LONG);
        assert!(!record.expires_in.is_zero(), "{what}: it is there, and expires in no time");
    }
}

/// Inspecting a lapsed record shows how long its lease is and for how long it has lapsed, until it is renewed: a
/// reconciler waits for some leases.
async fn inspecting_shows_how_long_a_lease_has_lapsed(lab: &Lab<'_>) {
    let (store, key) = (lab.store().await, key());
    let first = Claim { lease: SHORT, ..claim() };
    store.claim(&key, &first).await;
    lab.lapse().await;
    let lapsed = store.record("after the lapse", &key).await;
    near("after the lapse: lease", lapsed.lease, SHORT);
    is("after the lapse: lapsed", &!lapsed.lapsed_for.is_zero(), &true);
    lab.lapse().await;
    let later = store.record("some time later", &key).await;
    near("some time later: lease", later.lease, SHORT);
    within("some time later: lapsed for", lapsed.lapsed_for + SHORT, later.lapsed_for);
    for entry in store.list(Filter::Abandoned, None, 10).await.entries {
        within("listed: lapsed for", later.lapsed_for, entry.record.lapsed_for);
        near("listed: lease", entry.record.lease, SHORT);
    }
    let longer = Claim { lease: LONG, ..first };
    is("renewing", &store.renew(&key, &longer).await, &Renewed::Done);
    is("after renewing: lapsed for", &store.record("after renewing", &key).await.lapsed_for, &Duration::ZERO);
}

/// Listing gives every record, a page at a time, all of them or those in one state.
async fn listing_gives_every_record_in_pages(lab: &Lab<'_>) {
    let store = lab.store().await;
    let mut kept = HashMap::new();
    for n in 0..25 {
        let (key, first) = (key(), claim());
        store.claim(&key, &first).await;
        if n % 2 == 0 {
            done("settling", &store.settle(&key, &settlement(&first, b"kept")).await);
        }
        kept.insert(key, first);
    }
    let states = [(State::Settled, 13), (State::Running, 12), (State::Released, 0)];
    let filters = states.map(|(state, count)| (Filter::State(state), count));
    for (filter, count) in [(Filter::All, 25), (Filter::Abandoned, 0)].into_iter().chain(filters) {
        for limit in [1, 4, 100] {
            let what = format!("listing {filter:?}, {limit} a page");
            let listed: HashMap<_, _> =
                everything(&store, filter, limit).await.into_iter().map(|entry| (entry.key, entry.record)).collect();
            is(&what, &listed.len(), &count);
            for (key, record) in &listed {
                let Some(claim) = kept.get(key) else { panic!("{what}: a key that was never claimed") };
                holds(&what, record, claim, claim.claimant);
                assert!(filter.admits(record), "{what}: one is {:?}", record.state);
            }
        }
    }
}

/// Among running records, those that are abandoned can be distinguished.
async fn abandoned_records_can_be_told(lab: &Lab<'_>) {
    let store = lab.store().await;
    let [_, _, over, ..] = one_of_each(&store).await;
    let running = everything(&store, Filter::State(State::Running), 2).await;
    let told: Vec<_> = running.into_iter().filter(|entry| entry.record.is_abandoned()).map(|e| e.key).collect();
    is("the running records that say they are abandoned", &told, &vec![over.clone()]);
    let listed: Vec<_> = everything(&store, Filter::Abandoned, 2).await.into_iter().map(|e| e.key).collect();
    is("the abandoned records", &listed, &vec![over]);
}

/// Stats count the records of the namespace by state, lapsed ones apart.
async fn stats_count_by_state(lab: &Lab<'_>) {
    let store = lab.store().await;
    is("stats of no records", &store.stats().await, &Stats::default());
    one_of_each(&store).await;
    one_of_each(&store).await;
    let two = Stats { issued: 2, running: 2, abandoned: 2, settled: 2, released: 2 };
    is("stats of two records in each state", &store.stats().await, &two);
}

/// What has expired is not there for operators either.
async fn what_has_expired_is_neither_listed_nor_counted(lab: &Lab<'_>) {
    let store = lab.store().await;
    let (settled, freed, first) = (key(), key(), claim());
    store.claim(&settled, &first).await;
    store.settle(&settled, &Settlement { retention: Duration::ZERO, ..settlement(&first, b"gone") }).await;
    store.claim(&freed, &first).await;
    store.release(&freed, &Release::new(first.claimant, Duration::ZERO)).await;
    store.claim(&key(), &Claim { horizon: Duration::ZERO, ..lapsed() }).await;
    is("the number of records listed", &everything(&store, Filter::All, 100).await.len(), &0);
    is("stats", &store.stats().await, &Stats::default());
    is("forgetting what has expired", &store.forget(&settled).await, &false);
}

/// An abandoned record is settled in its runner's place. If the runner comes back, it sees that it lost.
async fn an_abandoned_record_is_settled_in_its_runners_place(lab: &Lab<'_>) {
    let store = lab.store().await;
    for at_most_once in [false, true] {
        let (key, runner, operator) = (key(), Claim { at_most_once, ..lapsed() }, claim());
        store.claim(&key, &runner).await;
        let outcome = store.settle_as(&key, runner.claimant, &settlement(&operator, b"found out")).await;
        done("settling in the runner's place", &outcome);
        let record = store.record("after that", &key).await;
        is("after that: state, attempt", &(record.state, record.attempt), &(State::Settled, 1));
        holds("after that", &record, &runner, operator.claimant);
        replayed("a duplicate", &store.claim(&key, &claim()).await, b"found out");
        let late = store.settle(&key, &settlement(&runner, b"late")).await;
        refused("the late runner's settling", late, Some(&record));
        refused("the late runner's releasing", store.release(&key, &release(&runner)).await, Some(&record));
        is("the late runner's renewing", &store.renew(&key, &runner).await, &Renewed::Lost);
        untouched("after the late runner", Some(&record), store.inspect(&key).await.as_ref());
    }
}

/// An abandoned record is released in its runner's place: the next try runs, and the runner sees that it lost.
async fn an_abandoned_record_is_released_in_its_runners_place(lab: &Lab<'_>) {
    let store = lab.store().await;
    for at_most_once in [false, true] {
        let (key, runner, operator) = (key(), Claim { at_most_once, ..lapsed() }, claim());
        store.claim(&key, &runner).await;
        done("releasing in the runner's place", &store.release_as(&key, runner.claimant, &release(&operator)).await);
        let record = store.record("after that", &key).await;
        is("after that: state, attempt", &(record.state, record.attempt), &(State::Released, 1));
        refused("the late runner's releasing", store.release(&key, &release(&runner)).await, Some(&record));
        let late = store.settle(&key, &settlement(&runner, b"late")).await;
        refused("the late runner's settling", late, Some(&record));
        is("the late runner's renewing", &store.renew(&key, &runner).await, &Renewed::Lost);
        granted("the next claim", &store.claim(&key, &claim()).await, 2);
    }
    let (token, runner) = (key(), Claim { lease: Duration::ZERO, ..token_claim() });
    store.issue(&token, LONG).await;
    store.claim(&token, &runner).await;
    done(
        "releasing a token in the runner's place",
        &store.release_as(&token, runner.claimant, &release(&claim())).await,
    );
    is("an abandoned token, released", &store.record("after that", &token).await.state, &State::Issued);
    granted("the next claim on the token", &store.claim(&token, &token_claim()).await, 2);
}

/// What is alive, has ended, is another's or was never there is not reconciled.
async fn what_is_not_abandoned_is_not_reconciled(lab: &Lab<'_>) {
    let store = lab.store().await;
    let [issued, alive, over, settled, freed] = one_of_each(&store).await;
    let mut cases = Vec::new();
    for (what, key) in [("an issued", issued), ("a running", alive), ("a settled", settled), ("a released", freed)] {
        let seen = store.record(what, &key).await.claimant;
        cases.push((what, key, seen));
    }
    cases.push(("another's lapsed", over, claim().claimant));
    cases.push(("an unknown", key(), claim().claimant));
    for (what, key, seen) in cases {
        let before = store.inspect(&key).await;
        let what = format!("reconciling {what} record");
        refused(&what, store.settle_as(&key, seen, &settlement(&claim(), b"wrong")).await, before.as_ref());
        refused(&what, store.release_as(&key, seen, &release(&claim())).await, before.as_ref());
        untouched(&what, before.as_ref(), store.inspect(&key).await.as_ref());
    }
}

/// Forgetting removes a record in whatever state and returns whether there was one, and its runner has lost.
async fn forgetting_removes_whatever_is_there(lab: &Lab<'_>) {
    let store = lab.store().await;
    is("forgetting an unknown key", &store.forget(&key()).await, &false);
    for key in one_of_each(&store).await {
        is("forgetting", &store.forget(&key).await, &true);
        untouched("after forgetting", None, store.inspect(&key).await.as_ref());
        is("forgetting once more", &store.forget(&key).await, &false);
        granted("a claim after forgetting", &store.claim(&key, &claim()).await, 1);
    }
    let (key, runner) = (key(), claim());
    store.claim(&key, &runner).await;
    store.forget(&key).await;
    refused("settling what was forgotten", store.settle(&key, &settlement(&runner, b"late")).await, None);
    refused("releasing what was forgotten", store.release(&key, &release(&runner)).await, None);
    is("renewing what was forgotten", &store.renew(&key, &runner).await, &Renewed::Lost);
}

/// Purging removes only what has expired, and no more than it was asked to.
async fn purging_removes_nothing_that_is_alive(lab: &Lab<'_>) {
    let store = lab.store().await;
    let keys = one_of_each(&store).await;
    for _ in 0..3 {
        let (key, first) = (key(), claim());
        store.claim(&key, &first).await;
        store.settle(&key, &Settlement { retention: Duration::ZERO, ..settlement(&first, b"gone") }).await;
    }
    let before = store.stats().await;
    assert!(store.purge(2).await <= 2, "purging with a limit of two removed more");
    store.purge(100).await;
    is("stats after purging", &store.stats().await, &before);
    for key in &keys {
        store.record("after purging", key).await;
    }
    let [_, alive, ..] = &keys;
    let first = claim();
    let holder = Claim { claimant: store.record("after purging", alive).await.claimant, ..first };
    running("a claim after purging", &store.claim(alive, &claim()).await, &holder);
}
