//! A store of one's own, on anything that can replace a value by compare-and-set: a table of DynamoDB, a key-value
//! bucket of NATS, etcd. `docs/stores.md` goes through it step by step.
//!
//! `cargo run --example custom_store` checks it with the conformance suite, and prints each rule and whether it holds.

use std::{
    collections::BTreeMap,
    future::ready,
    io,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::{sleep, timeout};
use tower_idempotency::{
    StoreError,
    store::{
        Claim, Claimant, Claimed, Cursor, Entry, Filter, Finished, Issue, Issued, Page, Record, RecordKey, RecordSlot,
        Release, Renewed, Settlement, Stats, Store, StoreAdmin, StoreErrorKind, StoreFuture,
    },
    testing::suite,
};

/// How often a waiting duplicate looks whether the first request has ended.
const PAUSE: Duration = Duration::from_millis(50);

/// Keeps the records of one namespace in a bucket.
#[derive(Clone)]
struct BucketStore {
    bucket: Bucket,
    /// Begins the name of each record, so that namespaces are kept apart.
    prefix: Vec<u8>,
}

impl BucketStore {
    fn new(bucket: Bucket, namespace: &str) -> Self {
        // The length comes first: otherwise `a` with `bc` and `ab` with `c` would be one name.
        Self { bucket, prefix: [&namespace.len().to_be_bytes(), namespace.as_bytes()].concat() }
    }

    fn name(&self, key: &RecordKey) -> Vec<u8> {
        [&self.prefix, key.as_bytes()].concat()
    }

    /// Reads the record under a name, and the revision that was read.
    async fn read(&self, name: &[u8]) -> Result<(u64, RecordSlot), StoreError> {
        let (revision, bytes) = self.bucket.get(name).await.map_err(unavailable)?;
        Ok((revision, RecordSlot::from_bytes(bytes.as_deref(), self.bucket.now())?))
    }

    /// Applies a rule to the record of a key, in one atomic step.
    async fn update<T>(&self, key: &RecordKey, rule: impl Fn(&mut RecordSlot) -> T) -> Result<T, StoreError> {
        let name = self.name(key);
        loop {
            let (revision, mut slot) = self.read(&name).await?;
            let answer = rule(&mut slot);
            if !slot.is_changed() || self.replace(&name, revision, &slot).await? {
                return Ok(answer);
            }
            // The record was changed since it was read, so the rule is applied to what it is now.
        }
    }

    /// Writes a record back, unless it was changed since it was read; returns whether it was written.
    async fn replace(&self, name: &[u8], revision: u64, slot: &RecordSlot) -> Result<bool, StoreError> {
        self.bucket.compare_and_set(name, revision, slot.to_bytes()).await.map_err(unavailable)
    }
}

/// A call that fails may have taken effect, unless the error says `without_effect`.
fn unavailable(error: io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the bucket cannot be reached").with_source(error)
}

impl Store for BucketStore {
    // The bucket is on the network, so its answers have to be awaited.
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        StoreFuture::new(self.update(key, |slot| slot.issue(issue)))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        StoreFuture::new(self.update(key, |slot| slot.claim(claim)))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        StoreFuture::new(self.update(key, |slot| slot.renew(claim)))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.update(key, |slot| slot.settle(settlement)))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.update(key, |slot| slot.release(release)))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::new(async move {
            let name = self.name(key);
            let ended = async {
                while self.read(&name).await?.1.is_running_under(holder) {
                    sleep(PAUSE).await;
                }
                Ok(())
            };
            timeout(within, ended).await.unwrap_or(Ok(()))
        })
    }
}

impl StoreAdmin for BucketStore {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        StoreFuture::new(async move { self.read(&self.name(key)).await?.1.inspect() })
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        StoreFuture::new(async move {
            let after = after.as_ref().map_or(&*self.prefix, Cursor::as_bytes);
            let names = self.bucket.names(&self.prefix, after, limit).await.map_err(unavailable)?;
            let mut entries = Vec::new();
            for name in &names {
                let record = self.read(name).await?.1.inspect()?.filter(|record| filter.admits(record));
                let key = RecordKey::from_bytes(&name[self.prefix.len()..]);
                entries.extend(key.zip(record).map(|(key, record)| Entry::new(key, record)));
            }
            let last = names.last().filter(|_| names.len() == limit);
            Ok(Page::new(entries, last.map(|name| Cursor::from_bytes(&**name))))
        })
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.update(key, move |slot| slot.settle_as(seen, settlement)))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.update(key, move |slot| slot.release_as(seen, release)))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        StoreFuture::new(self.update(key, RecordSlot::forget))
    }

    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        StoreFuture::new(async move {
            let mut removed = 0;
            for name in self.bucket.names(&[], &[], usize::MAX).await.map_err(unavailable)? {
                let (revision, slot) = self.read(&name).await?;
                if removed < limit && slot.is_empty() && self.replace(&name, revision, &slot).await? {
                    removed += 1;
                }
            }
            Ok(removed as u64)
        })
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        StoreFuture::new(async move {
            let mut stats = Stats::default();
            for name in self.bucket.names(&self.prefix, &self.prefix, usize::MAX).await.map_err(unavailable)? {
                if let Some(record) = self.read(&name).await?.1.inspect()? {
                    stats.count(record.state, record.is_abandoned());
                }
            }
            Ok(stats)
        })
    }
}

/// Stands for the service that keeps the values. Each value has a revision, which is never used twice; 0 is that of a
/// name without a value.
#[derive(Clone, Default)]
struct Bucket(Arc<Mutex<Values>>);

#[derive(Default)]
struct Values {
    by_name: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    last_revision: u64,
}

#[expect(clippy::unused_async, clippy::unused_self, reason = "a service is called over the network")]
impl Bucket {
    async fn get(&self, name: &[u8]) -> io::Result<(u64, Option<Vec<u8>>)> {
        let found = self.values().by_name.get(name).cloned();
        Ok(found.map_or((0, None), |(revision, bytes)| (revision, Some(bytes))))
    }

    /// Sets or removes a value, if its revision is `seen`; returns whether it was.
    async fn compare_and_set(&self, name: &[u8], seen: u64, bytes: Option<Vec<u8>>) -> io::Result<bool> {
        let mut values = self.values();
        if values.by_name.get(name).map_or(0, |(revision, _)| *revision) != seen {
            return Ok(false);
        }
        values.last_revision += 1;
        let revision = values.last_revision;
        match bytes {
            Some(bytes) => drop(values.by_name.insert(name.to_vec(), (revision, bytes))),
            None => drop(values.by_name.remove(name)),
        }
        Ok(true)
    }

    /// Returns the names after `after` that begin with `prefix`, in order.
    async fn names(&self, prefix: &[u8], after: &[u8], limit: usize) -> io::Result<Vec<Vec<u8>>> {
        let values = self.values();
        let names = values.by_name.range::<[u8], _>((Bound::Excluded(after), Bound::Unbounded)).map(|(name, _)| name);
        Ok(names.take_while(|name| name.starts_with(prefix)).take(limit).cloned().collect())
    }

    /// Returns the clock of the service, in milliseconds.
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), String> {
    let bucket = Bucket::default();
    let failures = suite::failures(&|namespace: &str| ready(BucketStore::new(bucket.clone(), namespace))).await;
    for rule in suite::rules() {
        let failed = failures.iter().any(|failure| failure.rule.name() == rule.name());
        println!("{} {}: {}", if failed { "FAILED" } else { "passed" }, rule.topic(), rule.name());
    }
    match &failures[..] {
        [] => Ok(()),
        [first, ..] => Err(format!("{} rules are broken: {first} …", failures.len())),
    }
}
