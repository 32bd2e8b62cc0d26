//! What every database goes through: many tasks on the same keys, and clocks.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use tower_idempotency::store::{Claim, Claimed, Finished, Origin, RecordKey, Release, Settlement, StoreAdmin};

use super::store_on;
use crate::database::TestDatabase;

const TASKS: usize = 50;
const KEYS: usize = 200;
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
/// A loaded machine takes longer than a minute for a race.
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn key(name: &str) -> RecordKey {
    RecordKey::new("/orders/{id}", Some("ann"), name).unwrap()
}

pub(crate) fn claim() -> Claim {
    Claim::new(MINUTE, MINUTE)
}

pub(crate) fn settlement(claim: &Claim) -> Settlement {
    Settlement::new(claim.claimant, Some("kept".into()), MINUTE)
}

/// Claims and settles a key.
pub(crate) async fn settled(store: &impl StoreAdmin, key: &RecordKey) -> Claim {
    let first = claim();
    assert!(matches!(store.claim(key, &first).await.unwrap(), Claimed::Granted(_)));
    assert!(matches!(store.settle(key, &settlement(&first)).await.unwrap(), Finished::Done));
    first
}

/// Leaves a record that has expired, which nobody has removed.
pub(crate) async fn expired(store: &impl StoreAdmin, key: &RecordKey) {
    let first = claim();
    store.claim(key, &first).await.unwrap();
    store.settle(key, &Settlement::new(first.claimant, None, Duration::ZERO)).await.unwrap();
}

pub(crate) async fn replays(store: &impl StoreAdmin, key: &RecordKey) {
    assert_eq!(store.claim(key, &claim()).await.unwrap(), Claimed::Settled(Some("kept".into()), Origin::NONE));
}

/// 50 tasks on 200 keys, as two processes: each key runs once, though every third run is released first, and nobody
/// receives an error.
pub(crate) async fn many_tasks_on_the_same_keys<D: TestDatabase>() {
    let place = D::place().await;
    many_tasks([store_on::<D>(&place).await, store_on::<D>(&place).await]).await;
}

pub(crate) async fn many_tasks<S: StoreAdmin + Clone>(stores: [S; 2]) {
    race(stores, |finished| assert!(matches!(finished, Finished::Done), "{finished:?}")).await;
}

/// The same while somebody goes on cutting all connections. A caller that ends a claim may learn that it was done before, or,
/// of a release, what has come of it since.
pub(crate) async fn many_tasks_while<S: StoreAdmin + Clone>(stores: [S; 2], cut: impl AsyncFn()) {
    let cutting = async {
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cut().await;
        }
    };
    tokio::select! {
        () = race(stores, drop) => {}
        () = cutting => {}
    }
}

async fn race<S: StoreAdmin + Clone>(stores: [S; 2], ended: fn(Finished)) {
    let runs: Arc<HashMap<_, _>> = Arc::new((0..KEYS).map(|n| (key(&n.to_string()), AtomicU32::new(0))).collect());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, runs) = (stores[task % 2].clone(), Arc::clone(&runs));
            tokio::spawn(async move {
                // Some in the same order, so that they meet; some from elsewhere, so that all keys have racers.
                for n in 0..KEYS {
                    let name = (n + task % 5 * 40) % KEYS;
                    let key = key(&name.to_string());
                    while !attempt(&store, &key, name, &runs[&key], ended).await {}
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(runs.values().all(|runs| runs.load(Relaxed) == 1), "{runs:?}");
    let stats = stores[0].stats().await.unwrap();
    assert_eq!((stats.settled, stats.running, stats.released), (KEYS as u64, 0, 0));
}

/// Says whether the operation has ended.
async fn attempt<S: StoreAdmin>(
    store: &S,
    key: &RecordKey,
    name: usize,
    runs: &AtomicU32,
    ended: fn(Finished),
) -> bool {
    let claim = claim();
    match store.claim(key, &claim).await.unwrap() {
        Claimed::Granted(granted) if name.is_multiple_of(3) && granted.attempt == 1 => {
            let release = Release::new(claim.claimant, MINUTE);
            ended(store.release(key, &release).await.unwrap());
            false
        }
        Claimed::Granted(_) => {
            runs.fetch_add(1, Relaxed);
            let settlement = Settlement::new(claim.claimant, Some("kept".into()), HOUR);
            ended(store.settle(key, &settlement).await.unwrap());
            true
        }
        Claimed::Running { holder, .. } => {
            store.changed(key, holder, MINUTE).await.unwrap();
            false
        }
        Claimed::Settled(payload, _) => {
            assert_eq!(payload, Some("kept".into()));
            true
        }
        other => panic!("{other:?}"),
    }
}

/// No moment of the application's clock reaches a statement, only spans of time do: a clock that is wrong by minutes
/// changes nothing, since nobody asks it.
#[test]
fn nobody_asks_the_clock_of_the_application() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert!(!fs::read_to_string(&path).unwrap().contains("SystemTime::now"), "{}", path.display());
            }
        }
    }
}
