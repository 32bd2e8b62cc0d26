//! Records in Redis, written by this crate or by anyone else.

use std::time::Duration;

use allocation_counter::measure;
use bytes::Bytes;
use tower_idempotency::{
    RedisStore,
    fingerprint::Fingerprint,
    store::{
        Binding, Caller, Claim, Claimant, Claimed, Filter, Finished, Granted, Issue, Issued, Record, RecordKey,
        Release, SecretNumber, Settlement, State, Store, StoreAdmin, StoreErrorKind, TraceContext, Verdict, judge,
    },
};

use crate::{
    redis_layout::{Fault, Layout},
    redis_server::{Kept, Server},
    rules::{choices::Choices, probe::block_on},
};

const DAY: Duration = Duration::from_secs(86_400);

thread_local! {
    static HOUSE: (Server, RedisStore) = {
        let server = Server::default();
        let store = block_on(RedisStore::builder().with_connection(server.clone())).expect("a store");
        (server, store)
    };
}

pub fn key() -> RecordKey {
    RecordKey::new("/", None, "k").expect("a key")
}

/// Bytes that a record's name stands for are read as they are, or refused, and take no more memory than they have.
pub fn any_value(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut time = || {
        let time = choices.one_of(&[-2, -1, 0, 1, 60_000, i64::MAX]);
        if choices.flip() {
            choices.bytes(8).iter().fold(0, |time: i64, byte| time << 8 | i64::from(*byte))
        } else {
            time
        }
    };
    let kept = Kept { left: time(), expires: time(), ..Kept::default() };
    let value = choices.bytes(255).iter().chain(choices.rest()).copied().collect::<Vec<_>>();
    let read = Layout::read(&value, kept.left);
    let limit = 64 * 1024 + 64 * value.len() as u64;
    let kept = Kept { value: Some(value), ..kept };
    HOUSE.with(|(server, store)| {
        *server.kept() = kept.clone();
        let used = measure(|| block_on(looks(store, &read, &kept)));
        assert!(used.bytes_max < limit, "{} bytes for {}", used.bytes_max, limit);
        block_on(claims(server, store, &read, kept.left));
    });
}

/// Everything that reads and changes nothing.
async fn looks(store: &RedisStore, read: &Result<Layout, Fault>, kept: &Kept) {
    match (read, store.inspect(&key()).await) {
        (Ok(layout), Ok(Some(record))) => layout.is_told_by(&record, kept.expires),
        (Err(_), Err(error)) => assert_eq!(error.kind(), StoreErrorKind::Corrupt),
        (read, inspected) => panic!("{read:?} and {inspected:?}"),
    }
    let all = store.list(Filter::All, None, 10).await.expect("a page").entries;
    assert_eq!(all.len(), usize::from(read.is_ok()));
    let abandoned = store.list(Filter::Abandoned, None, 10).await.expect("a page").entries;
    let expected = all.iter().filter(|entry| entry.record.is_abandoned() && !entry.record.expires_in.is_zero());
    assert_eq!(abandoned.len(), expected.count());
    let stats = store.stats().await.expect("numbers");
    let counted = stats.issued + stats.running + stats.abandoned + stats.settled + stats.released;
    assert!(counted <= 1 && (read.as_ref().is_err() || counted == u64::from(kept.left > 0 || kept.left == -1)));
    let (settlement, release) = (Settlement::new(Claimant::random(), None, DAY), Release::new(Claimant::random(), DAY));
    for finished in [store.settle(&key(), &settlement).await, store.release(&key(), &release).await] {
        match (read, finished) {
            (Ok(layout), Ok(Finished::Refused(Some(record)))) => layout.is_told_by(&record, kept.expires),
            (Err(Fault::Newer), Ok(Finished::Refused(None))) => {}
            (Err(Fault::Torn), Err(error)) => assert_eq!(error.kind(), StoreErrorKind::Corrupt),
            (read, finished) => panic!("{read:?} and {finished:?}"),
        }
    }
}

/// Claims on it are decided as the one function says that decides.
async fn claims(server: &Server, store: &RedisStore, read: &Result<Layout, Fault>, left: i64) {
    let before = server.kept().clone();
    for like in [false, true] {
        *server.kept() = before.clone();
        let mut claim = Claim::new(DAY, DAY);
        if let (true, Ok(layout)) = (like, read) {
            (claim.fingerprint, claim.caller, claim.secret) = (layout.fingerprint, layout.caller, layout.secret);
            claim.issued = layout.binding.clone();
        }
        let claimed = store.claim(&key(), &claim).await;
        let layout = match (read, claimed) {
            (Ok(layout), Ok(claimed)) => {
                agrees(layout, &claim, claimed);
                layout
            }
            // What looks as if it ran is asked for once more, and is gone by then.
            (Err(_), Ok(Claimed::Granted(granted))) if left <= 0 && left != -1 => {
                assert_eq!(before.value.and_then(|value| value.get(1).copied()), Some(1));
                return assert_eq!(granted, Granted::first(&claim));
            }
            (Err(Fault::Newer), Ok(claimed)) => return assert_eq!(claimed, Claimed::Incompatible),
            (Err(Fault::Torn), Err(error)) => return assert_eq!(error.kind(), StoreErrorKind::Corrupt),
            (read, claimed) => panic!("{read:?} and {claimed:?}"),
        };
        let taken = matches!(verdict(layout, &claim), Verdict::Grant(_));
        let record = store.inspect(&key()).await;
        if taken {
            let record = record.expect("it is whole").expect("it is there");
            let binding = layout.binding.clone().filter(|_| layout.left > 0);
            assert_eq!((record.state, record.claimant, record.binding), (State::Running, claim.claimant, binding));
        } else if left > 0 {
            assert_eq!(server.kept().value, before.value);
        }
    }
}

/// What the store is to say.
fn verdict(layout: &Layout, claim: &Claim) -> Verdict {
    let as_told = judge(Some(&layout.head()), claim, layout.age());
    if layout.state == State::Running {
        return as_told;
    }
    // Of anything else it is not asked what is left: it was there, and is gone only once it is to be changed.
    let mut alive = layout.head();
    alive.expires = u64::MAX;
    match judge(Some(&alive), claim, 0) {
        Verdict::Grant(_) => as_told,
        verdict => verdict,
    }
}

fn agrees(layout: &Layout, claim: &Claim, claimed: Claimed) {
    match (verdict(layout, claim), claimed) {
        (Verdict::Grant(expected) | Verdict::Granted(expected), Claimed::Granted(granted)) => {
            assert_eq!(granted, expected)
        }
        (Verdict::Running { holder, left }, claimed) => assert_eq!(claimed, Claimed::Running { holder, left }),
        (Verdict::Settled(expected), Claimed::Settled(payload, origin)) => {
            assert_eq!((payload.as_deref(), origin), (layout.payload(), expected))
        }
        (Verdict::Mismatch(what), claimed) => assert_eq!(claimed, Claimed::Mismatch(what)),
        (Verdict::OutcomeUnknown, Claimed::OutcomeUnknown)
        | (Verdict::Incompatible, Claimed::Incompatible)
        | (Verdict::Withdrawn, Claimed::Withdrawn)
        | (Verdict::NotIssued, Claimed::NotIssued)
        | (Verdict::Foreign, Claimed::Foreign) => {}
        (verdict, claimed) => panic!("{verdict:?} and {claimed:?}"),
    }
}

/// What a store writes it reads again.
pub fn comes_back(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut array = [0; 32];
    array.iter_mut().zip(choices.bytes(32)).for_each(|(to, from)| *to = *from);
    let fingerprint = Fingerprint::from_parts(u8::try_from(choices.below(256)).expect("a byte"), array);
    let caller = Caller::from_bytes(array[..17].try_into().expect("seventeen"));
    let secret = SecretNumber::from_u32(u32::from_be_bytes(array[17..21].try_into().expect("four")));
    let trace = choices.flip().then(|| TraceContext::from_bytes(array[..25].try_into().expect("twenty-five")));
    let time = |choices: &mut Choices<'_>| {
        choices.one_of(&[DAY, Duration::from_millis(1), Duration::from_micros(1_500), Duration::MAX])
    };
    let (lease, horizon, life) = (time(&mut choices), time(&mut choices), time(&mut choices));
    let mut text = || String::from_utf8_lossy(choices.bytes(40)).into_owned();
    let (purpose, principal) = (text(), text());
    let principal = choices.flip().then_some(&*principal);
    let binding = choices.flip().then(|| Binding::new(&purpose, principal));
    let mut claim = Claim::new(lease, horizon);
    (claim.fingerprint, claim.caller, claim.at_most_once) = (fingerprint, caller, choices.flip());
    (claim.note, claim.issued) = (Bytes::copy_from_slice(choices.bytes(255)), binding.clone());
    // What is issued has no secret, and none of a claim from outside can be looked at without its own.
    let secret = if binding.is_some() { SecretNumber::NONE } else { secret };
    (claim.secret, claim.trace) = (secret, trace);
    HOUSE.with(|(server, store)| {
        *server.kept() = Kept::default();
        block_on(async {
            if let Some(binding) = &binding {
                assert_eq!(store.issue(&key(), &Issue::new(binding.clone(), life)).await.ok(), Some(Issued::Done));
                let record = inspect(store).await;
                assert_eq!((record.state, &record.binding, record.attempt), (State::Issued, &claim.issued, 0));
            }
            let claimed = store.claim(&key(), &claim).await.expect("the store works");
            assert_eq!(claimed, Claimed::Granted(Granted::first(&claim)));
            let record = inspect(store).await;
            assert_eq!((record.state, record.claimant, record.attempt), (State::Running, claim.claimant, 1));
            assert_eq!(
                (record.fingerprint, record.caller, record.at_most_once),
                (fingerprint, caller, claim.at_most_once)
            );
            assert_eq!((record.secret, record.origin, record.trace), (secret, claim.origin(), trace));
            assert_eq!(record.caller_is_new, caller != Caller::NONE);
            assert_eq!((&record.note, record.binding, record.payload), (&claim.note, binding, None));
            assert_eq!(record.lease_left.as_millis(), lease.as_millis().min(1 << 47));
            assert_eq!(record.expires_in.as_millis(), lease.max(horizon).as_millis().min(1 << 47));
        });
    });
}

async fn inspect(store: &RedisStore) -> Record {
    store.inspect(&key()).await.expect("the store works").expect("it is there")
}
