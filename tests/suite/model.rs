// A store that is plain to read: one map behind one lock for each namespace. It stands for the stores that users write.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tower_idempotency::{
    Fingerprint, RecordKey,
    store::{
        Binding, Caller, Claim, Claimant, Claimed, Cursor, Entry, Filter, Finished, Granted, Head, Issue, Issued,
        Origin, Page, Record, Release, Renewed, SecretNumber, Settlement, State, Stats, Store, StoreAdmin, StoreFuture,
        TraceContext, Verdict, judge,
    },
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

pub(crate) type Rows = BTreeMap<Vec<u8>, Row>;

#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) claimant: Claimant,
    pub(crate) attempt: u32,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) caller: Caller,
    pub(crate) caller_is_new: bool,
    pub(crate) secret: SecretNumber,
    pub(crate) origin: Origin,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) at_most_once: bool,
    pub(crate) takeover: bool,
    pub(crate) lease: Duration,
    pub(crate) lease_ends: u64,
    pub(crate) expires: u64,
    pub(crate) created: u64,
    pub(crate) settled: Option<u64>,
    pub(crate) payload: Option<Bytes>,
    pub(crate) note: Bytes,
    pub(crate) binding: Option<Binding>,
    pub(crate) token_expires: u64,
}

impl Model {
    /// In the time of the runtime, which may be paused.
    pub(crate) fn new() -> Self {
        let begin = Instant::now();
        Self::with_clock(move || 1_700_000_000_000 + millis(begin.elapsed()))
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

    pub(crate) fn verdict(&self, key: &RecordKey, claim: &Claim) -> Verdict {
        judge(self.rows().get(key.as_bytes()).map(Row::head).as_ref(), claim, self.now())
    }

    pub(crate) fn carry_out(&self, verdict: Verdict, key: &RecordKey, claim: &Claim) -> Claimed {
        self.carry_out_on(&mut self.rows(), verdict, key, claim)
    }

    fn carry_out_on(&self, rows: &mut Rows, verdict: Verdict, key: &RecordKey, claim: &Claim) -> Claimed {
        if let Verdict::Grant(granted) = verdict {
            self.grant(rows, &granted, key, claim);
        }
        Claimed::from_verdict(verdict, || rows[key.as_bytes()].payload.clone())
    }

    fn grant(&self, rows: &mut Rows, granted: &Granted, key: &RecordKey, claim: &Claim) {
        let now = self.now();
        let before = rows.get(key.as_bytes());
        let row = Row {
            state: State::Running,
            claimant: claim.claimant,
            attempt: granted.attempt,
            fingerprint: claim.fingerprint,
            caller: claim.caller,
            caller_is_new: granted.caller_is_new,
            secret: claim.secret,
            origin: granted.origin,
            trace: claim.trace,
            at_most_once: claim.at_most_once,
            takeover: granted.takeover,
            lease: claim.lease,
            lease_ends: later(now, claim.lease),
            expires: later(now, claim.lease.max(claim.horizon)),
            created: before.map_or(now, |row| row.created),
            settled: None,
            payload: None,
            note: claim.note.clone(),
            binding: claim.issued.clone(),
            token_expires: before.map_or(0, |row| row.token_expires),
        };
        rows.insert(key.as_bytes().to_vec(), row);
        self.shared.changes.send_replace(());
    }

    /// Ends the claim that `claimant` holds, if `may` says that it may be ended.
    fn end(
        &self,
        key: &RecordKey,
        claimant: Claimant,
        done_already: impl Fn(&Row) -> bool,
        may: impl Fn(&Row) -> bool,
        end: impl Fn(&mut Row),
    ) -> Finished {
        let now = self.now();
        let mut rows = self.rows();
        let outcome = match rows.get_mut(key.as_bytes()) {
            None => Finished::Refused(None),
            Some(row) if row.claimant == claimant && claimant != Claimant::NONE && done_already(row) => {
                Finished::AlreadyDone
            }
            Some(row) if row.state == State::Running && may(row) => {
                end(row);
                Finished::Done
            }
            Some(row) => Finished::Refused(Some(Box::new(row.record(now)))),
        };
        self.shared.changes.send_replace(());
        outcome
    }

    fn end_settled(&self, key: &RecordKey, settlement: &Settlement, may: impl Fn(&Row) -> bool) -> Finished {
        let now = self.now();
        let settled = |row: &Row| row.state == State::Settled;
        self.end(key, settlement.claimant, settled, may, |row| {
            row.state = State::Settled;
            row.claimant = settlement.claimant;
            row.payload.clone_from(&settlement.payload);
            row.settled = Some(now);
            row.expires = later(now, settlement.retention);
        })
    }

    fn end_released(&self, key: &RecordKey, release: &Release, may: impl Fn(&Row) -> bool) -> Finished {
        let now = self.now();
        let released = |row: &Row| matches!(row.state, State::Released | State::Issued);
        self.end(key, release.claimant, released, may, |row| {
            let token = row.binding.is_some();
            row.state = if token { State::Issued } else { State::Released };
            row.claimant = release.claimant;
            row.expires = if token { row.token_expires } else { later(now, release.keep) };
            if release.undo {
                row.undo(now);
            }
        })
    }
}

impl Row {
    pub(crate) fn head(&self) -> Head<'_> {
        let mut head = Head::new(self.state, self.claimant, self.attempt);
        head.fingerprint = self.fingerprint;
        head.caller = self.caller;
        head.caller_is_new = self.caller_is_new;
        head.secret = self.secret;
        head.origin = self.origin;
        head.at_most_once = self.at_most_once;
        head.takeover = self.takeover;
        head.lease_ends = self.lease_ends;
        head.expires = self.expires;
        head.binding = self.binding.as_ref();
        head
    }

    pub(crate) fn record(&self, now: u64) -> Record {
        let time = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let left = |ends: u64| Duration::from_millis(ends.saturating_sub(now));
        let mut record = Record::new(self.state, self.claimant, self.attempt);
        record.fingerprint = self.fingerprint;
        record.caller = self.caller;
        record.caller_is_new = self.caller_is_new;
        record.secret = self.secret;
        record.origin = self.origin;
        record.trace = self.trace;
        record.at_most_once = self.at_most_once;
        record.takeover = self.takeover;
        let running = |time| if self.state == State::Running { time } else { Duration::ZERO };
        record.lease = running(self.lease);
        record.lease_left = running(left(self.lease_ends));
        record.lapsed_for = running(Duration::from_millis(now.saturating_sub(self.lease_ends)));
        record.created = time(self.created);
        record.settled = self.settled.map(time);
        record.expires_in = left(self.expires);
        record.payload.clone_from(&self.payload);
        record.note.clone_from(&self.note);
        record.binding.clone_from(&self.binding);
        record
    }

    /// Takes the last claim back. A record that began with it has expired then.
    fn undo(&mut self, now: u64) {
        self.attempt -= 1;
        if self.attempt == 0 {
            self.origin = Origin::NONE;
            self.expires = if self.binding.is_some() { self.expires } else { now };
        }
        if self.caller_is_new {
            (self.caller, self.caller_is_new) = (Caller::NONE, false);
        }
    }

    pub(crate) fn lapsed(&self, now: u64) -> bool {
        self.lease_ends <= now
    }
}

impl Store for Model {
    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        let now = self.now();
        let expires = later(now, issue.lifetime);
        let mut rows = self.rows();
        if rows.contains_key(key.as_bytes()) {
            return StoreFuture::ready(Ok(Issued::Exists));
        }
        let row = Row {
            state: State::Issued,
            claimant: Claimant::NONE,
            attempt: 0,
            fingerprint: Fingerprint::OFF,
            caller: Caller::NONE,
            caller_is_new: false,
            secret: SecretNumber::NONE,
            origin: Origin::NONE,
            trace: None,
            at_most_once: false,
            takeover: false,
            lease: Duration::ZERO,
            lease_ends: 0,
            expires,
            created: now,
            settled: None,
            payload: None,
            note: Bytes::new(),
            binding: Some(issue.binding.clone()),
            token_expires: expires,
        };
        rows.insert(key.as_bytes().to_vec(), row);
        StoreFuture::ready(Ok(Issued::Done))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        let mut rows = self.rows();
        let verdict = judge(rows.get(key.as_bytes()).map(Row::head).as_ref(), claim, self.now());
        StoreFuture::ready(Ok(self.carry_out_on(&mut rows, verdict, key, claim)))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        let now = self.now();
        let mut rows = self.rows();
        let renewed = match rows.get_mut(key.as_bytes()) {
            Some(row) if row.state == State::Running && row.claimant == claim.claimant => {
                row.lease_ends = later(now, claim.lease);
                row.expires = later(now, claim.lease.max(claim.horizon));
                Renewed::Done
            }
            _ => Renewed::Lost,
        };
        StoreFuture::ready(Ok(renewed))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        StoreFuture::ready(Ok(self.end_settled(key, settlement, |row| row.claimant == settlement.claimant)))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::ready(Ok(self.end_released(key, release, |row| row.claimant == release.claimant)))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        let held = move || {
            let rows = self.rows();
            rows.get(key.as_bytes()).is_some_and(|row| row.state == State::Running && row.claimant == holder)
        };
        StoreFuture::new(async move {
            let mut changes = self.changes();
            let ended = async { while held() && changes.changed().await.is_ok() {} };
            let _ = timeout(within, ended).await;
            Ok(())
        })
    }
}

impl StoreAdmin for Model {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        let now = self.now();
        StoreFuture::ready(Ok(self.rows().get(key.as_bytes()).map(|row| row.record(now))))
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        let now = self.now();
        let rows = self.rows();
        let wanted = rows.iter().filter(|(_, row)| filter.admits(&row.record(now)));
        let rest = wanted.filter(|(key, _)| after.as_ref().is_none_or(|after| key.as_slice() > after.as_bytes()));
        let entries: Vec<_> = rest
            .take(limit)
            .filter_map(|(key, row)| Some(Entry::new(RecordKey::from_bytes(key)?, row.record(now))))
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
        let now = self.now();
        let may = move |row: &Row| row.claimant == seen && row.lapsed(now);
        StoreFuture::ready(Ok(self.end_settled(key, settlement, may)))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        let now = self.now();
        let may = move |row: &Row| row.claimant == seen && row.lapsed(now);
        StoreFuture::ready(Ok(self.end_released(key, release, may)))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        let forgotten = self.rows().remove(key.as_bytes()).is_some();
        self.shared.changes.send_replace(());
        StoreFuture::ready(Ok(forgotten))
    }

    fn purge(&self, _limit: usize) -> StoreFuture<'_, u64> {
        // Nothing that has expired is left by `rows`.
        StoreFuture::ready(Ok(0))
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        let now = self.now();
        let mut stats = Stats::default();
        for row in self.rows().values() {
            *match row.state {
                State::Issued => &mut stats.issued,
                State::Running if row.lapsed(now) => &mut stats.abandoned,
                State::Running => &mut stats.running,
                State::Settled => &mut stats.settled,
                _ => &mut stats.released,
            } += 1;
        }
        StoreFuture::ready(Ok(stats))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn later(now: u64, time: Duration) -> u64 {
    now.saturating_add(millis(time))
}
