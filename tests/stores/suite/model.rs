// A store that is plain to read: one map behind one lock for each namespace. It stands for the stores that users write.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tower_idempotency::store::{
    Claim, Claimant, Claimed, Cursor, Entry, Filter, Finished, Issue, Issued, Page, Record, RecordKey, RecordSlot,
    Release, Renewed, Settlement, Stats, Store, StoreAdmin, StoreFuture, StoredRecord,
};

#[derive(Clone)]
pub(crate) struct Model {
    shared: Arc<Shared>,
    rows: Arc<Mutex<Rows>>,
}

struct Shared {
    now: Box<dyn Fn() -> u64 + Send + Sync>,
    namespaces: Mutex<BTreeMap<String, Arc<Mutex<Rows>>>>,
    changes: watch::Sender<()>,
}

pub(crate) type Rows = BTreeMap<Vec<u8>, StoredRecord>;

impl Model {
    /// In the time of the runtime, which may be paused.
    pub(crate) fn new() -> Self {
        let begin = Instant::now();
        let passed = move || u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Self::with_clock(move || 1_700_000_000_000 + passed())
    }

    pub(crate) fn with_clock(now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let shared = Shared { now: Box::new(now), namespaces: Mutex::default(), changes: watch::Sender::new(()) };
        Self { shared: Arc::new(shared), rows: Arc::default() }
    }

    pub(crate) fn namespace(&self, namespace: &str) -> Self {
        let mut namespaces = self.shared.namespaces.lock().expect("no verb panics");
        let rows = namespaces.entry(namespace.to_owned()).or_default().clone();
        Self { shared: self.shared.clone(), rows }
    }

    pub(crate) fn now(&self) -> u64 {
        (self.shared.now)()
    }

    /// The rows, without those that have expired.
    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        let now = self.now();
        let mut rows = self.rows.lock().expect("no verb panics");
        rows.retain(|_, row| row.expires > now);
        rows
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// What is read of a key.
    pub(crate) fn slot(&self, key: &RecordKey) -> RecordSlot {
        RecordSlot::new(self.rows().get(key.as_bytes()).cloned(), self.now())
    }

    /// Writes a slot back, whatever is there by now.
    pub(crate) fn write(&self, key: &RecordKey, slot: RecordSlot) {
        Self::write_into(&mut self.rows(), key, slot);
        self.shared.changes.send_replace(());
    }

    fn write_into(rows: &mut Rows, key: &RecordKey, slot: RecordSlot) {
        match slot.into_record() {
            Some(row) => drop(rows.insert(key.as_bytes().to_vec(), row)),
            None => drop(rows.remove(key.as_bytes())),
        }
    }

    /// Applies the rules to the record of a key, under the lock.
    fn at<'a, T>(&self, key: &RecordKey, method: impl FnOnce(&mut RecordSlot) -> T) -> StoreFuture<'a, T> {
        let mut rows = self.rows();
        let mut slot = RecordSlot::new(rows.get(key.as_bytes()).cloned(), self.now());
        let answer = method(&mut slot);
        if slot.is_changed() {
            Self::write_into(&mut rows, key, slot);
            self.shared.changes.send_replace(());
        }
        StoreFuture::ready(Ok(answer))
    }
}

impl Store for Model {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.at(key, |slot| slot.issue(issue))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        self.at(key, |slot| slot.claim(claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.at(key, |slot| slot.renew(claim))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        self.at(key, |slot| slot.settle(settlement))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.at(key, |slot| slot.release(release))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::new(async move {
            let mut changes = self.changes();
            let ended = async { while self.slot(key).is_running_under(holder) && changes.changed().await.is_ok() {} };
            let _ = timeout(within, ended).await;
            Ok(())
        })
    }
}

impl StoreAdmin for Model {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        StoreFuture::ready(self.slot(key).inspect())
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        let now = self.now();
        let rows = self.rows();
        let wanted = rows.iter().filter(|(_, row)| filter.admits(&row.read(now)));
        let rest = wanted.filter(|(key, _)| after.as_ref().is_none_or(|after| key.as_slice() > after.as_bytes()));
        let entries: Vec<_> = rest
            .take(limit)
            .filter_map(|(key, row)| Some(Entry::new(RecordKey::from_bytes(key)?, row.read(now))))
            .collect();
        let full = entries.last().filter(|_| entries.len() == limit);
        let next = full.map(|entry| Cursor::from_bytes(entry.key.as_bytes()));
        StoreFuture::ready(Ok(Page::new(entries, next)))
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        self.at(key, |slot| slot.settle_as(seen, settlement))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.at(key, |slot| slot.release_as(seen, release))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        self.at(key, RecordSlot::forget)
    }

    fn purge(&self, _limit: usize) -> StoreFuture<'_, u64> {
        // Nothing that has expired is left by `rows`.
        StoreFuture::ready(Ok(0))
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        let now = self.now();
        let mut stats = Stats::default();
        for row in self.rows().values() {
            stats.count(row.state, row.lease_ends <= now);
        }
        StoreFuture::ready(Ok(stats))
    }
}
