//! What a sealed store keeps, and what it refuses to open.

use std::{future::ready, sync::Arc, time::Duration};

use bytes::Bytes;
use tower_idempotency::{
    MemoryStore,
    store::{
        CachedStore, Claim, Claimed, Filter, Finished, Origin, Record, RecordKey, Seal, SealedStore, SealingKeyId,
        SealingKeys, Settlement, State, Store, StoreAdmin,
    },
    testing::{FaultyStore, suite},
};

use crate::suite::Model;

const MINUTE: Duration = Duration::from_secs(60);

fn keys(byte: u8) -> SealingKeys {
    SealingKeys::new([byte; 32]).unwrap()
}

fn key(name: &str) -> RecordKey {
    RecordKey::new("/orders", Some("ann"), name).unwrap()
}

fn claim() -> Claim {
    Claim::new(MINUTE, MINUTE)
}

async fn settled(store: &impl Store, key: &RecordKey, payload: impl Into<Bytes>) {
    let mut first = claim();
    first.note = "one tea".into();
    assert!(matches!(store.claim(key, &first).await.unwrap(), Claimed::Granted(_)));
    let settlement = Settlement::new(first.claimant, Some(payload.into()), MINUTE);
    assert!(matches!(store.settle(key, &settlement).await.unwrap(), Finished::Done));
}

async fn record(store: &impl StoreAdmin, key: &RecordKey) -> Record {
    store.inspect(key).await.unwrap().unwrap()
}

/// What a duplicate finds.
async fn answer(store: &impl Store, key: &RecordKey) -> Bytes {
    match store.claim(key, &claim()).await.unwrap() {
        Claimed::Settled(Some(payload), _) => payload,
        other => panic!("{other:?}"),
    }
}

async fn replays(store: &impl Store, key: &RecordKey) {
    assert_eq!(answer(store, key).await, "paid");
}

/// A duplicate finds that the operation has ended, and nothing that can be read.
async fn refuses(store: &impl StoreAdmin, key: &RecordKey, sealed_with: SealingKeyId) {
    let found = answer(store, key).await;
    assert!(!found.windows(4).any(|bytes| bytes == b"paid"));
    let seen = record(store, key).await;
    assert_eq!((seen.state, seen.payload_seal()), (State::Settled, Seal::Closed(sealed_with)));
    assert_eq!(seen.payload, Some(found));
}

/// Puts an answer into a store, as somebody does who can write to it.
async fn plant(store: &MemoryStore, key: &RecordKey, payload: Bytes) {
    store.forget(key).await.unwrap();
    settled(store, key, payload).await;
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_every_store() {
    let (memory, slots) = (MemoryStore::new(), Model::new());
    suite::run(&|namespace: &str| ready(SealedStore::new(memory.namespace(namespace), keys(1)))).await;
    suite::run(&|namespace: &str| ready(SealedStore::new(slots.namespace(namespace), keys(1)).bound_to(namespace)))
        .await;
    let faulty = |namespace: &str| FaultyStore::new(memory.namespace(namespace));
    suite::run(&|namespace: &str| ready(Arc::new(SealedStore::new(faulty(namespace), keys(1))) as Arc<dyn StoreAdmin>))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_on_many_threads() {
    let store = MemoryStore::new();
    suite::run(&|namespace: &str| ready(SealedStore::new(store.namespace(namespace), keys(1)))).await;
}

#[tokio::test(start_paused = true)]
async fn the_rules_around_a_cache_and_behind_one() {
    let (front, behind) = (MemoryStore::new(), MemoryStore::new());
    suite::run(&|namespace: &str| {
        let cached = CachedStore::new(front.namespace(namespace), behind.namespace(namespace));
        ready(SealedStore::new(cached, keys(1)))
    })
    .await;
    suite::run(&|namespace: &str| {
        ready(CachedStore::new(front.namespace(namespace), SealedStore::new(behind.namespace(namespace), keys(1))))
    })
    .await;
}

#[tokio::test]
async fn answers_and_notes_are_sealed_and_the_record_says_so() {
    let inner = MemoryStore::new();
    let store = SealedStore::new(inner.clone(), keys(1));
    settled(&store, &key("a"), "paid").await;
    replays(&store, &key("a")).await;

    let opened = record(&store, &key("a")).await;
    assert_eq!((opened.payload.as_deref(), &opened.note[..]), (Some(&b"paid"[..]), &b"one tea"[..]));
    assert_eq!([opened.payload_seal(), opened.note_seal()], [Seal::Opened(keys(1).id()); 2]);
    let page = store.list(Filter::All, None, 10).await.unwrap();
    assert_eq!(page.entries[0].record.payload_seal(), Seal::Opened(keys(1).id()));

    let kept = record(&inner, &key("a")).await;
    assert_eq!([kept.payload_seal(), kept.note_seal()], [Seal::Closed(keys(1).id()); 2]);
    assert_eq!((kept.payload.unwrap().len(), kept.note.len()), (4 + 49, 7 + 49));
    assert!(
        format!("{:?}", record(&inner, &key("a")).await).contains(&format!("Closed(SealingKeyId({})", keys(1).id()))
    );
}

#[tokio::test]
async fn no_note_and_no_answer_stay_none() {
    let store = SealedStore::new(MemoryStore::new(), keys(1));
    let first = claim();
    store.claim(&key("a"), &first).await.unwrap();
    store.settle(&key("a"), &Settlement::new(first.claimant, None, MINUTE)).await.unwrap();
    assert_eq!(store.claim(&key("a"), &claim()).await.unwrap(), Claimed::Settled(None, Origin::NONE));
    let seen = record(&store, &key("a")).await;
    assert_eq!((seen.payload_seal(), seen.note_seal(), seen.note.len()), (Seal::None, Seal::None, 0));
}

#[tokio::test]
async fn a_store_that_answers_at_once_goes_on_doing_so() {
    let memory = SealedStore::new(MemoryStore::new(), keys(1));
    assert!(memory.is_immediate());
    assert!(!SealedStore::new(FaultyStore::new(MemoryStore::new()), keys(1)).is_immediate());
    let mut first = claim();
    first.note = "one tea".into();
    assert!(matches!(memory.claim(&key("a"), &first).into_ready(), Some(Ok(Claimed::Granted(_)))));
    let settlement = Settlement::new(first.claimant, Some("paid".into()), MINUTE);
    assert!(matches!(memory.settle(&key("a"), &settlement).into_ready(), Some(Ok(Finished::Done))));
    assert!(memory.claim(&key("a"), &claim()).into_ready().is_some());
    assert!(memory.inspect(&key("a")).into_ready().is_some());
}

#[tokio::test]
async fn a_key_is_replaced_without_an_answer_that_is_refused() {
    let inner = MemoryStore::new();
    let with = |keys| SealedStore::new(inner.clone(), keys);
    let (old, new) = (keys(1), keys(2));
    let steps = [old.clone(), old.accept([2; 32]).unwrap(), new.clone().accept([1; 32]).unwrap()];
    for (step, keys) in steps.iter().enumerate() {
        let store = with(keys.clone());
        settled(&store, &key(&step.to_string()), "paid").await;
        // Its neighbours, a step before it and a step behind it, read it as well.
        for neighbour in &steps[step.saturating_sub(1)..(step + 2).min(3)] {
            replays(&with(neighbour.clone()), &key(&step.to_string())).await;
        }
    }
    // Once the former key is gone, so is what it has sealed, and nothing else.
    let store = with(new);
    replays(&store, &key("2")).await;
    refuses(&store, &key("0"), keys(1).id()).await;
}

#[tokio::test]
async fn an_answer_without_its_key_is_settled_and_closed_until_the_key_is_back() {
    let inner = MemoryStore::new();
    settled(&SealedStore::new(inner.clone(), keys(1)), &key("a"), "paid").await;
    for _ in 0..2 {
        refuses(&SealedStore::new(inner.clone(), keys(2)), &key("a"), keys(1).id()).await;
    }
    replays(&SealedStore::new(inner, keys(1)), &key("a")).await;
}

#[tokio::test]
async fn an_answer_that_was_changed_is_not_opened() {
    let inner = MemoryStore::new();
    let store = SealedStore::new(inner.clone(), keys(1));
    settled(&store, &key("a"), "paid").await;
    let sealed = record(&inner, &key("a")).await.payload.unwrap();
    // Behind the mark, the version and the number of the key: in the nonce, in the text, in the tag.
    for at in [9, 33, sealed.len() - 1] {
        let mut changed = sealed.to_vec();
        changed[at] ^= 1;
        plant(&inner, &key("a"), changed.into()).await;
        refuses(&store, &key("a"), keys(1).id()).await;
    }
    plant(&inner, &key("a"), sealed).await;
    replays(&store, &key("a")).await;
}

#[tokio::test]
async fn an_answer_that_was_moved_is_not_opened() {
    let inner = MemoryStore::new();
    let store = SealedStore::new(inner.clone(), keys(1)).bound_to("shop");
    settled(&store, &key("a"), "paid").await;
    let kept = record(&inner, &key("a")).await;
    // To another record, and to the record of the same key in another namespace.
    plant(&inner, &key("b"), kept.payload.clone().unwrap()).await;
    refuses(&store, &key("b"), keys(1).id()).await;
    refuses(&SealedStore::new(inner.clone(), keys(1)).bound_to("other"), &key("a"), keys(1).id()).await;
    // A note that stands in the place of an answer.
    plant(&inner, &key("a"), kept.note).await;
    refuses(&store, &key("a"), keys(1).id()).await;
}

#[tokio::test]
async fn what_is_not_sealed_is_refused_unless_it_is_accepted() {
    let inner = MemoryStore::new();
    settled(&inner, &key("a"), "paid").await;
    let store = SealedStore::new(inner.clone(), keys(1));
    refuses(&store, &key("a"), SealingKeyId::NONE).await;
    let seen = record(&store, &key("a")).await;
    assert_eq!(seen.note_seal(), Seal::Closed(SealingKeyId::NONE));
    assert!(!seen.note.windows(3).any(|bytes| bytes == b"tea"));

    let store = store.accept_unsealed();
    replays(&store, &key("a")).await;
    assert_eq!(record(&store, &key("a")).await.payload_seal(), Seal::None);
    settled(&store, &key("b"), "paid").await;
    assert_eq!(record(&inner, &key("b")).await.payload_seal(), Seal::Closed(keys(1).id()));
}

#[tokio::test]
async fn before_sealing_begins_each_process_can_open() {
    let inner = MemoryStore::new();
    let before = SealedStore::new(inner.clone(), keys(1)).without_sealing();
    settled(&before, &key("a"), "paid").await;
    assert_eq!(record(&inner, &key("a")).await.payload_seal(), Seal::None);
    let after = SealedStore::new(inner.clone(), keys(1)).accept_unsealed();
    settled(&after, &key("b"), "paid").await;
    for store in [&before, &after] {
        replays(store, &key("a")).await;
        replays(store, &key("b")).await;
    }
}

/// How long an answer may be that this store takes.
async fn longest(store: &impl StoreAdmin) -> usize {
    let (mut accepted, mut refused) = (0, 100_000);
    while refused - accepted > 1 {
        let length = usize::midpoint(accepted, refused);
        let (key, first) = (key(&length.to_string()), claim());
        store.claim(&key, &first).await.unwrap();
        let settlement = Settlement::new(first.claimant, Some(vec![7; length].into()), MINUTE);
        let fits = store.settle(&key, &settlement).await.is_ok();
        *if fits { &mut accepted } else { &mut refused } = length;
        store.forget(&key).await.unwrap();
    }
    accepted
}

#[tokio::test]
async fn limits_of_the_inner_store_count_the_seal() {
    let small = || MemoryStore::builder().max_bytes(50_000).build();
    let (plain, sealed) = (longest(&small()).await, longest(&SealedStore::new(small(), keys(1))).await);
    assert!((1_000..50_000).contains(&plain), "{plain}");
    assert!((49..49 + 64).contains(&(plain - sealed)), "{plain} bytes, and sealed {sealed}");
}

/// The client of a run that was overtaken receives what the record says.
#[tokio::test(start_paused = true)]
async fn a_record_that_refuses_an_end_is_opened() {
    let store = SealedStore::new(MemoryStore::new(), keys(1));
    let late = Claim::new(Duration::ZERO, MINUTE);
    store.claim(&key("a"), &late).await.unwrap();
    settled(&store, &key("a"), "paid").await;
    let ended = store.settle(&key("a"), &Settlement::new(late.claimant, Some("late".into()), MINUTE)).await.unwrap();
    match ended {
        Finished::Refused(Some(record)) => {
            assert_eq!((record.payload.as_deref(), &record.note[..]), (Some(&b"paid"[..]), &b"one tea"[..]));
        }
        other => panic!("{other:?}"),
    }
}

/// An operator settles in the place of a dead runner, whose note can be read.
#[tokio::test]
async fn what_operators_settle_is_sealed() {
    let inner = MemoryStore::new();
    let store = SealedStore::new(inner.clone(), keys(1));
    let mut dead = Claim::new(Duration::ZERO, MINUTE);
    dead.note = "one tea".into();
    store.claim(&key("a"), &dead).await.unwrap();
    let abandoned = store.list(Filter::Abandoned, None, 10).await.unwrap().entries.remove(0);
    assert_eq!(abandoned.record.note, "one tea");
    let settlement = Settlement::new(claim().claimant, Some("paid".into()), MINUTE);
    assert!(matches!(store.settle_as(&key("a"), dead.claimant, &settlement).await.unwrap(), Finished::Done));
    replays(&store, &key("a")).await;
    assert_eq!(record(&inner, &key("a")).await.payload_seal(), Seal::Closed(keys(1).id()));
}

#[tokio::test]
async fn a_cache_inside_is_sealed_too() {
    let (cache, behind) = (MemoryStore::new(), MemoryStore::new());
    let store = SealedStore::new(CachedStore::new(cache.clone(), behind), keys(1));
    settled(&store, &key("a"), "paid").await;
    for _ in 0..3 {
        replays(&store, &key("a")).await;
    }
    assert_eq!(record(&cache, &key("a")).await.payload_seal(), Seal::Closed(keys(1).id()));
}

/// It was sealed by libsodium, with the keys that HMAC-SHA256 derives from 32 bytes of 1. Whatever later versions write, they
/// open it.
#[tokio::test]
async fn what_version_1_of_the_layout_has_sealed_is_opened() {
    let sealed = concat!(
        "82544953",                                         // the mark
        "01",                                               // the version
        "faa37b63",                                         // the number of the key
        "000102030405060708090a0b0c0d0e0f1011121314151617", // the nonce
        "d6dd398a",                                         // the text
        "2ceaa071d24a258355efffe6be75d939",                 // the tag
    );
    let bytes: Vec<_> =
        (0..sealed.len()).step_by(2).map(|at| u8::from_str_radix(&sealed[at..at + 2], 16).unwrap()).collect();
    let inner = MemoryStore::new();
    let key = RecordKey::new("/orders", Some("ann"), "7f0c").unwrap();
    plant(&inner, &key, bytes.into()).await;
    let store = SealedStore::new(inner, keys(1)).bound_to("shop");
    replays(&store, &key).await;
    assert_eq!(record(&store, &key).await.payload_seal(), Seal::Opened(keys(1).id()));
    assert_eq!(keys(1).id().to_string(), "faa37b63");
}

#[test]
fn debug_shows_no_key() {
    let keys = SealingKeys::new("correct horse battery staple, four times over").unwrap();
    let shown = format!("{:?}", SealedStore::new(MemoryStore::new(), keys.clone()));
    assert!(!shown.contains("horse") && shown.contains(&keys.id().to_string()), "{shown}");
}
