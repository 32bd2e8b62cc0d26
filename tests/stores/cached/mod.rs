//! A cache answers duplicates of what is settled, and nothing else.

mod flaky_store;
mod stalling_store;

use std::{future::ready, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::time::{Instant, advance};
use tower_idempotency::{
    MemoryStore,
    fingerprint::Fingerprint,
    store::{
        Binding, CachedStore, Caller, Claim, Claimed, Finished, Issue, Mismatch, Origin, RecordKey, Release,
        Settlement, Store, StoreAdmin, StoreErrorKind, StoreVerb,
    },
    testing::{Faults, FaultyStore, ManualClock, suite},
};

use self::{
    flaky_store::{FlakyStore, Mood},
    stalling_store::{Over, Stalling},
};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

type Pair = CachedStore<FlakyStore, FaultyStore<MemoryStore>>;

/// Returns a cached store, its cache, the calls of its inner store, and the inner store.
fn pair() -> (Pair, FlakyStore, Faults, MemoryStore) {
    let (front, behind) = (FlakyStore::default(), MemoryStore::new());
    let counted = FaultyStore::new(behind.clone());
    let calls = counted.faults();
    (CachedStore::new(front.clone(), counted), front, calls, behind)
}

fn key() -> RecordKey {
    RecordKey::new("/orders", Some("ann"), "7f0c").unwrap()
}

fn claim() -> Claim {
    Claim::new(HOUR, HOUR)
}

fn token_claim(binding: &Binding) -> Claim {
    let mut claim = claim();
    claim.issued = Some(binding.clone());
    claim
}

async fn settled(store: &impl Store, key: &RecordKey, payload: &'static str, retention: Duration) {
    let first = claim();
    assert!(matches!(store.claim(key, &first).await.unwrap(), Claimed::Granted(_)));
    let settlement = Settlement::new(first.claimant, Some(payload.into()), retention);
    assert!(matches!(store.settle(key, &settlement).await.unwrap(), Finished::Done));
}

async fn granted(store: &impl Store, claim: &Claim) {
    assert!(matches!(store.claim(&key(), claim).await.unwrap(), Claimed::Granted(granted) if granted.attempt == 1));
}

async fn replays(store: &impl Store, key: &RecordKey, payload: &'static str) {
    assert_eq!(store.claim(key, &claim()).await.unwrap(), Claimed::Settled(Some(payload.into()), Origin::NONE));
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_every_store() {
    let (front, behind) = (MemoryStore::new(), MemoryStore::new());
    let within = |namespace: &str| CachedStore::new(front.namespace(namespace), behind.namespace(namespace));
    suite::run(&|namespace: &str| ready(within(namespace))).await;
    suite::run(&|namespace: &str| ready(Arc::new(within(namespace)) as Arc<dyn StoreAdmin>)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_on_many_threads() {
    let (front, behind) = (MemoryStore::new(), MemoryStore::new());
    suite::run(&|namespace: &str| ready(CachedStore::new(front.namespace(namespace), behind.namespace(namespace))))
        .await;
}

/// Whatever state it is in, the cache takes nothing away from what the inner store promises.
#[tokio::test(start_paused = true)]
async fn the_rules_without_a_front() {
    for mood in [Mood::Failing, Mood::Silent] {
        let (front, behind) = (FlakyStore::default(), MemoryStore::new());
        front.is(mood);
        suite::run(&|namespace: &str| ready(CachedStore::new(front.clone(), behind.namespace(namespace)))).await;
    }
    let (full, behind) = (MemoryStore::builder().capacity(0).build(), MemoryStore::new());
    suite::run(&|namespace: &str| ready(CachedStore::new(full.namespace(namespace), behind.namespace(namespace))))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_hot_key_is_asked_for_behind_once() {
    let (store, _, calls, _) = pair();
    settled(&store, &key(), "kept", HOUR).await;
    for _ in 0..1000 {
        replays(&store, &key(), "kept").await;
    }
    assert_eq!(calls.calls(StoreVerb::Claim), 2);
}

#[tokio::test(start_paused = true)]
async fn a_front_judges_as_the_store_does() {
    let (store, _, calls, _) = pair();
    settled(&store, &key(), "kept", HOUR).await;
    replays(&store, &key(), "kept").await;
    let mut other = claim();
    other.fingerprint = Fingerprint::from_parts(1, [7; 32]);
    assert_eq!(store.claim(&key(), &other).await.unwrap(), Claimed::Mismatch(Mismatch::Fingerprint));
    other.caller = Caller::from_parts(1, [7; 16]);
    assert_eq!(store.claim(&key(), &other).await.unwrap(), Claimed::Mismatch(Mismatch::Caller));
    let token = token_claim(&Binding::new("order", None));
    assert_eq!(store.claim(&key(), &token).await.unwrap(), Claimed::Foreign);
    assert_eq!(calls.calls(StoreVerb::Claim), 2);
}

#[tokio::test(start_paused = true)]
async fn a_spent_token_is_bound_in_the_front_too() {
    let (store, front, calls, _) = pair();
    let (ann, bob) = (Binding::new("order", Some("ann")), Binding::new("order", Some("bob")));
    store.issue(&key(), &Issue::new(ann.clone(), HOUR)).await.unwrap();
    let first = token_claim(&ann);
    granted(&store, &first).await;
    store.settle(&key(), &Settlement::new(first.claimant, None, HOUR)).await.unwrap();
    for _ in 0..3 {
        let again = token_claim(&ann);
        assert_eq!(store.claim(&key(), &again).await.unwrap(), Claimed::Settled(None, Origin::NONE));
        let stranger = token_claim(&bob);
        assert_eq!(store.claim(&key(), &stranger).await.unwrap(), Claimed::Foreign);
        assert_eq!(store.claim(&key(), &claim()).await.unwrap(), Claimed::Foreign);
    }
    assert_eq!(front.inner.stats().await.unwrap().settled, 1);
    assert_eq!(calls.calls(StoreVerb::Claim), 2);
}

/// Those that come while the key is being copied go on without a copy.
#[tokio::test(start_paused = true)]
async fn a_crowd_copies_once() {
    let front = FaultyStore::new(MemoryStore::new());
    let store = CachedStore::new(front.clone(), MemoryStore::new());
    settled(&store, &key(), "kept", HOUR).await;
    front.faults().on(StoreVerb::Settle).delay(SECOND / 100);
    join_all((0..20).map(|_| async { replays(&store, &key(), "kept").await })).await;
    assert_eq!(front.faults().calls(StoreVerb::Settle), 1);
}

/// Issued, running and released records are not copied into the cache.
#[tokio::test(start_paused = true)]
async fn only_what_is_settled_is_copied() {
    let (store, front, calls, _) = pair();
    let first = claim();
    store.claim(&key(), &first).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(store.claim(&key(), &claim()).await.unwrap(), Claimed::Running { .. }));
    }
    store.release(&key(), &Release::new(first.claimant, HOUR)).await.unwrap();
    assert_eq!(calls.calls(StoreVerb::Claim), 4);
    assert_eq!(front.inner.stats().await.unwrap(), tower_idempotency::store::Stats::default());
}

#[tokio::test(start_paused = true)]
async fn a_copy_ends_before_its_record() {
    let (store, front, _, _) = pair();
    settled(&store, &key(), "kept", 5 * SECOND).await;
    advance(3 * SECOND).await;
    replays(&store, &key(), "kept").await;
    let copy = front.inner.inspect(&key()).await.unwrap().unwrap();
    assert_eq!(copy.expires_in, Duration::from_millis(1950));
    advance(Duration::from_millis(1990)).await;
    replays(&store, &key(), "kept").await;
    assert_eq!(front.inner.stats().await.unwrap().settled, 0);
    advance(Duration::from_millis(10)).await;
    granted(&store, &claim()).await;
}

/// Each step of copying takes as long as it may; the copy is gone with its record all the same.
#[tokio::test(start_paused = true)]
async fn a_copy_that_was_made_slowly_ends_before_its_record() {
    let (front, behind) = (FaultyStore::new(MemoryStore::new()), MemoryStore::new());
    let store = CachedStore::new(front.clone(), behind.clone()).cache_timeout(2 * SECOND);
    settled(&store, &key(), "kept", 10 * SECOND).await;
    front.faults().on(StoreVerb::Settle).delay(SECOND);
    replays(&store, &key(), "kept").await;
    let (copy, record) =
        (front.inspect(&key()).await.unwrap().unwrap(), behind.inspect(&key()).await.unwrap().unwrap());
    assert!(copy.expires_in < record.expires_in, "{copy:?} {record:?}");
}

/// The process stands still for a minute over an answer, of the cache's claim or of the inner record, or before it sends
/// the copy: none is made that would answer in the place of the record that has come meanwhile.
#[tokio::test(start_paused = true)]
async fn a_copy_that_a_stall_has_made_old_is_none() {
    for over in [Over::Claim, Over::Inspect, Over::Settle] {
        let clock = ManualClock::new();
        let (front, behind) = (Stalling::new(&clock), Stalling::new(&clock));
        let store = CachedStore::new(front.clone(), behind.clone());
        settled(&store, &key(), "first", 30 * SECOND).await;
        clock.advance(25 * SECOND);
        match over {
            Over::Claim | Over::Settle => front.stall(over),
            Over::Inspect => behind.stall(over),
        }
        replays(&store, &key(), "first").await;
        assert!(behind.inner.inspect(&key()).await.unwrap().is_none(), "{over:?}");
        settled(&behind.inner, &key(), "second", 30 * SECOND).await;
        replays(&store, &key(), "second").await;
    }
}

/// Between a duplicate's claim and the look at its record, the key became another request's.
#[tokio::test(start_paused = true)]
async fn a_record_that_has_become_another_one_is_not_copied() {
    let (front, behind) = (FaultyStore::new(MemoryStore::new()), MemoryStore::new());
    let store = CachedStore::new(front.clone(), behind.clone());
    settled(&store, &key(), "first", HOUR).await;
    let gate = front.faults().on(StoreVerb::Claim).once().hold();
    let duplicate = tokio::spawn({
        let store = store.clone();
        async move { replays(&store, &key(), "first").await }
    });
    gate.reached(1).await;
    assert!(behind.forget(&key()).await.unwrap());
    let mut other = claim();
    other.fingerprint = Fingerprint::from_parts(1, [7; 32]);
    assert!(matches!(behind.claim(&key(), &other).await.unwrap(), Claimed::Granted(_)));
    behind.settle(&key(), &Settlement::new(other.claimant, Some("second".into()), HOUR)).await.unwrap();
    gate.open();
    duplicate.await.unwrap();
    assert_eq!(front.inner().stats().await.unwrap().settled, 0);
    assert_eq!(store.claim(&key(), &claim()).await.unwrap(), Claimed::Mismatch(Mismatch::Fingerprint));
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_behind_is_replayed_no_longer_than_told() {
    let (store, _, _, behind) = pair();
    let store = store.max_age(4 * SECOND);
    settled(&store, &key(), "first", HOUR).await;
    replays(&store, &key(), "first").await;
    assert!(behind.forget(&key()).await.unwrap());
    settled(&behind, &key(), "second", HOUR).await;
    replays(&store, &key(), "first").await;
    advance(4 * SECOND).await;
    replays(&store, &key(), "second").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_through_the_front_is_forgotten_at_once() {
    let (store, _, _, _) = pair();
    settled(&store, &key(), "first", HOUR).await;
    replays(&store, &key(), "first").await;
    assert!(store.forget(&key()).await.unwrap());
    granted(&store, &claim()).await;
}

#[tokio::test(start_paused = true)]
async fn a_front_that_is_away_is_left_alone_for_a_second() {
    for mood in [Mood::Failing, Mood::Silent] {
        let (store, front, _, _) = pair();
        settled(&store, &key(), "kept", HOUR).await;
        front.is(mood);
        let (asked, began) = (front.asked(), Instant::now());
        for _ in 0..100 {
            replays(&store, &key(), "kept").await;
        }
        assert_eq!(front.asked(), asked + 1, "{mood:?}");
        assert!(began.elapsed() <= Duration::from_millis(51), "{mood:?}");
        front.is(Mood::Fine);
        advance(SECOND).await;
        replays(&store, &key(), "kept").await;
        assert_eq!(front.inner.stats().await.unwrap().settled, 1, "{mood:?}");
    }
}

/// A process that died while it copied: its claim in the cache is not a copy, and does not keep others from making one.
#[tokio::test(start_paused = true)]
async fn a_copy_that_was_not_finished_is_none() {
    let (front, behind) = (FaultyStore::new(MemoryStore::new()), MemoryStore::new());
    let store = CachedStore::new(front.clone(), behind);
    settled(&store, &key(), "kept", HOUR).await;
    front.faults().on(StoreVerb::Settle).once().fail(StoreErrorKind::Unavailable);
    replays(&store, &key(), "kept").await;
    assert_eq!(front.inner().stats().await.unwrap().running, 1);
    advance(SECOND).await;
    replays(&store, &key(), "kept").await;
    assert_eq!(front.inner().stats().await.unwrap().settled, 1);
}

#[tokio::test(start_paused = true)]
async fn errors_behind_are_errors() {
    let (store, front, calls, _) = pair();
    settled(&store, &key(), "kept", HOUR).await;
    calls.on_all().fail(StoreErrorKind::Unavailable);
    assert_eq!(store.claim(&key(), &claim()).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    calls.heal();
    replays(&store, &key(), "kept").await;
    // What the cache has it answers without the inner store.
    calls.on_all().fail(StoreErrorKind::Unavailable);
    replays(&store, &key(), "kept").await;
    assert_eq!(front.inner.stats().await.unwrap().settled, 1);
}

/// A crowd of duplicates on many threads, while the record is forgotten and made again through one store: each answer is
/// one that the record has had, and what was settled last is what all receive in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn crowds() {
    let store = CachedStore::new(FlakyStore::over(MemoryStore::new()), FaultyStore::new(MemoryStore::new()));
    let payloads = ["a", "b", "c", "d", "e"];
    for payload in payloads {
        settled(&store, &key(), payload, HOUR).await;
        let crowd: Vec<_> = (0..50)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { replays(&store, &key(), payload).await })
            })
            .collect();
        for one in crowd {
            one.await.unwrap();
        }
        assert!(store.forget(&key()).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_copied_where_no_time_is_left() {
    let (store, front, _, _) = pair();
    let store = store.max_age(Duration::from_millis(50));
    settled(&store, &key(), "kept", HOUR).await;
    replays(&store, &key(), "kept").await;
    assert_eq!(front.inner.stats().await.unwrap().settled, 0);
}
