use std::time::Duration;

use tokio::{task::JoinHandle, time::timeout};

use crate::store::{Claim, Claimant, RecordKey};

use super::{
    lab::{LONG, Lab, Probe, SHORT, claim, key, lapsed, release, settlement, undo},
    rule::rules,
};

rules!["waiting":
    a_change_before_waiting_counts,
    of_an_unknown_key_nobody_waits;
    waiting:
    a_change_wakes_those_who_wait,
    a_change_wakes_all_who_wait,
    waiting_ends_at_its_deadline,
    a_renewal_wakes_nobody,
    a_lapse_wakes_nobody
];

/// The time within which a waiter has to see a change. It is far from the waiter's own deadline.
const SOON: Duration = Duration::from_secs(15);

/// What ends a claim, or takes it away.
#[derive(Clone, Copy, Debug)]
enum Change {
    Settle,
    Release,
    Undo,
    TakeOver,
    Forget,
    SettleAs,
    ReleaseAs,
}

impl Change {
    const ALL: [Self; 7] =
        [Self::Settle, Self::Release, Self::Undo, Self::TakeOver, Self::Forget, Self::SettleAs, Self::ReleaseAs];

    async fn happen(self, store: &Probe, key: &RecordKey, first: &Claim) {
        let operator = claim();
        match self {
            Self::Settle => drop(store.settle(key, &settlement(first, b"kept")).await),
            Self::Release => drop(store.release(key, &release(first)).await),
            Self::Undo => drop(store.release(key, &undo(first)).await),
            Self::TakeOver => drop(store.claim(key, &claim()).await),
            Self::Forget => drop(store.forget(key).await),
            Self::SettleAs => drop(store.settle_as(key, first.claimant, &settlement(&operator, b"kept")).await),
            Self::ReleaseAs => drop(store.release_as(key, first.claimant, &release(&operator)).await),
        }
    }
}

fn wait(store: &Probe, key: &RecordKey, holder: Claimant, within: Duration) -> JoinHandle<()> {
    let (store, key) = (store.clone(), key.clone());
    tokio::spawn(async move { store.changed(&key, holder, within).await })
}

async fn ends_soon(what: &str, waiter: JoinHandle<()>) {
    let Ok(ended) = timeout(SOON, waiter).await else {
        panic!("{what}: the waiter still waits after {SOON:?}");
    };
    if let Err(error) = ended {
        panic!("{what}: the waiter panicked: {error}");
    }
}

fn still_waits(what: &str, waiter: &JoinHandle<()>) {
    assert!(!waiter.is_finished(), "{what}: the waiter woke, though the record still runs under the same holder");
    waiter.abort();
}

/// A change that happened before `changed` was called counts: it returns at once.
async fn a_change_before_waiting_counts(lab: &Lab<'_>) {
    let (store, other) = (lab.store().await, lab.store().await);
    for change in Change::ALL {
        let (key, first) = (key(), lapsed());
        store.claim(&key, &first).await;
        change.happen(&store, &key, &first).await;
        for store in [&store, &other] {
            ends_soon(&format!("{change:?}, then waiting"), wait(store, &key, first.claimant, LONG)).await;
        }
    }
}

/// Waiting ends at once for a key without a record, and for a claimant that never held the key.
async fn of_an_unknown_key_nobody_waits(lab: &Lab<'_>) {
    let store = lab.store().await;
    ends_soon("waiting for an unknown key", wait(&store, &key(), claim().claimant, LONG)).await;
    let held = key();
    store.claim(&held, &claim()).await;
    ends_soon("waiting for who does not hold the key", wait(&store, &held, claim().claimant, LONG)).await;
}

/// A change wakes who waits for it: settling, releasing, undoing, a takeover, forgetting, reconciliation.
async fn a_change_wakes_those_who_wait(lab: &Lab<'_>) {
    let (store, other) = (lab.store().await, lab.store().await);
    let mut waiters = Vec::new();
    for change in Change::ALL {
        let (key, first) = (key(), lapsed());
        store.claim(&key, &first).await;
        waiters.push((change, wait(&other, &key, first.claimant, LONG), key, first));
    }
    lab.pass(SHORT / 4).await;
    for (change, waiter, key, first) in waiters {
        change.happen(&store, &key, &first).await;
        ends_soon(&format!("waiting, then {change:?}"), waiter).await;
    }
}

/// All who wait wake, on whatever handle, and only those of the key that has changed.
async fn a_change_wakes_all_who_wait(lab: &Lab<'_>) {
    let handles = [lab.store().await, lab.store().await];
    let (changed, quiet, first) = (key(), key(), claim());
    handles[0].claim(&changed, &first).await;
    handles[0].claim(&quiet, &first).await;
    let waiters: Vec<_> =
        handles.iter().cycle().take(20).map(|store| wait(store, &changed, first.claimant, LONG)).collect();
    let bystander = wait(&handles[1], &quiet, first.claimant, LONG);
    lab.pass(SHORT / 4).await;
    Change::Settle.happen(&handles[0], &changed, &first).await;
    for waiter in waiters {
        ends_soon("one of many who wait", waiter).await;
    }
    lab.pass(SHORT / 4).await;
    still_waits("a change of another key", &bystander);
}

/// Waiting ends at its deadline if nothing changes, and not before.
async fn waiting_ends_at_its_deadline(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    let (short, long) = (wait(&store, &key, first.claimant, SHORT), wait(&store, &key, first.claimant, LONG));
    lab.lapse().await;
    ends_soon("waiting past the deadline", short).await;
    still_waits("waiting with the deadline to come", &long);
    ends_soon("waiting for no time at all", wait(&store, &key, first.claimant, Duration::ZERO)).await;
}

/// A renewal does not count as a change.
async fn a_renewal_wakes_nobody(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), claim());
    store.claim(&key, &first).await;
    let waiter = wait(&store, &key, first.claimant, LONG);
    lab.pass(SHORT / 4).await;
    store.renew(&key, &first).await;
    lab.pass(SHORT).await;
    still_waits("a renewal", &waiter);
}

/// A lease that lapses does not count as a change.
async fn a_lapse_wakes_nobody(lab: &Lab<'_>) {
    let (store, key, first) = (lab.store().await, key(), Claim { lease: SHORT, ..claim() });
    store.claim(&key, &first).await;
    let waiter = wait(&store, &key, first.claimant, LONG);
    lab.lapse().await;
    still_waits("a lease that lapsed", &waiter);
}
