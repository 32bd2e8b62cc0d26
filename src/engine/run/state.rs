//! The state of a run that others than its future look at: its claim, whether its client has left, whether the claim is
//! lost, what the handler has directed.
//!
//! *Attached* decides what dropping the future means, so it is known before the handler is called, and is read by `Drop`
//! without a lock. *Lost* is final: the store has said so. *Overdue* is not: the lease has lapsed without a renewal, and
//! a renewal that succeeds ends it.

use std::{
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{runtime::Handle, sync::Notify, time::Instant};

use crate::{
    engine::{ClaimRequest, Engine, Grant, Party, background::Bucket},
    store::{Granted, TransactionSlot},
    value::{Claim, Event, HandlerDirectives, NotKept, Origin, RecordKey, Secret, millis, status_of},
};

/// The run is dropped with its client.
const ATTACHED: u8 = 1;
/// The client has left, and the run goes on without it.
const DETACHED: u8 = 2;
/// The lease has lapsed without a renewal.
const OVERDUE: u8 = 4;
/// The store has said that the claim is gone.
const LOST: u8 = 8;
/// The claim is being ended: a renewal that is refused may only mean that the end took effect.
const ENDING: u8 = 16;
/// The handler has directed something.
const DIRECTED: u8 = 32;

/// The state of one run, shared by its future, its heartbeat and its handler.
///
/// What changes is atomic or behind a lock that is held for one assignment, so no lock is ever held across an await.
pub(crate) struct RunState {
    pub(crate) key: RecordKey,
    pub(crate) claim: Claim,
    pub(crate) granted: Granted,
    pub(crate) secret: Option<Secret>,
    /// The slot of its transaction, in transaction mode.
    pub(crate) slot: Option<TransactionSlot>,
    party: Party,
    flags: AtomicU8,
    /// When the claim was sent. `None` if there is none.
    sent: Option<Instant>,
    /// How long after that the last renewal that succeeded was sent, in milliseconds, rounded down.
    renewed_after: AtomicU64,
    /// How long the store took to grant the claim, if anybody observes.
    claim_took: Duration,
    /// How long after the claim was sent the work ended, in microseconds.
    work_ended_after: AtomicU64,
    /// The status of the answer; 0 if there is none.
    status: AtomicU16,
    /// Notified when the claim is lost or overdue.
    changed: Notify,
    directives: Mutex<HandlerDirectives>,
    runtime: OnceLock<Handle>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunState {
    /// Creates the state of a run that begins with a grant.
    pub(super) fn new(engine: &Engine, request: ClaimRequest, grant: &Grant) -> Self {
        let slot = grant.transaction.as_ref().map(|transaction| transaction.slot());
        Self {
            key: request.key,
            claim: request.claim,
            granted: grant.granted,
            secret: engine.secret.clone(),
            party: request.party,
            flags: AtomicU8::new(if engine.cancel_on_disconnect { ATTACHED } else { 0 }),
            sent: Some(grant.sent),
            renewed_after: AtomicU64::new(0),
            claim_took: grant.took,
            work_ended_after: AtomicU64::new(0),
            status: AtomicU16::new(0),
            slot,
            changed: Notify::const_new(),
            directives: Mutex::new(HandlerDirectives::default()),
            runtime: OnceLock::new(),
        }
    }

    /// Creates the state of an operation that has ended before: nothing is claimed for its duplicate.
    pub(crate) fn of_duplicate(key: RecordKey, claim: Claim, origin: Origin, secret: Option<Secret>) -> Self {
        Self {
            granted: Granted { attempt: 0, origin, ..Granted::first(&claim) },
            key,
            claim,
            secret,
            slot: None,
            party: Party::Scope,
            flags: AtomicU8::new(0),
            sent: None,
            renewed_after: AtomicU64::new(0),
            claim_took: Duration::ZERO,
            work_ended_after: AtomicU64::new(0),
            status: AtomicU16::new(0),
            changed: Notify::const_new(),
            directives: Mutex::new(HandlerDirectives::default()),
            runtime: OnceLock::new(),
        }
    }

    /// Records the status of the answer, for the events.
    pub(crate) fn set_status(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Records when the work ended, for the events.
    pub(super) fn set_work_ended(&self, at: Instant) {
        let after = self.sent.map_or(Duration::ZERO, |sent| at.duration_since(sent));
        self.work_ended_after.store(u64::try_from(after.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Reports that the operation is settled.
    pub(super) fn report_settled(&self, engine: &Engine, payload: Option<&Bytes>, not_kept: Option<NotKept>) {
        let (key, (ran, took)) = (&self.key, self.observed_times(engine));
        let status = status_of(self.status.load(Ordering::Relaxed));
        let kept = payload.map_or(0, Bytes::len);
        engine.report(&Event::Settled { key, status, kept, not_kept, ran, took });
    }

    /// Reports that the claim is released.
    pub(super) fn report_released(&self, engine: &Engine) {
        let (key, (ran, took)) = (&self.key, self.observed_times(engine));
        let status = status_of(self.status.load(Ordering::Relaxed));
        engine.report(&Event::Released { key, status, ran, took });
    }

    /// Returns how long the work ran, and how long its end has taken since; zero if nobody observes.
    fn observed_times(&self, engine: &Engine) -> (Duration, Duration) {
        if engine.observers.is_empty() {
            return (Duration::ZERO, Duration::ZERO);
        }
        let ended_after = Duration::from_micros(self.work_ended_after.load(Ordering::Relaxed));
        let now = engine.observed_since(self.sent);
        (ended_after.saturating_sub(self.claim_took), now.saturating_sub(ended_after))
    }

    fn is(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Acquire) & flag != 0
    }

    fn set(&self, flag: u8) {
        self.flags.fetch_or(flag, Ordering::AcqRel);
    }

    fn unset(&self, flag: u8) {
        self.flags.fetch_and(!flag, Ordering::AcqRel);
    }

    /// Remembers the runtime that the run is polled in, which takes over if its client leaves.
    pub(super) fn capture_runtime(&self) {
        if self.runtime.get().is_none()
            && let Ok(current) = Handle::try_current()
        {
            let _ = self.runtime.set(current);
        }
    }

    pub(in crate::engine) fn runtime(&self) -> Option<&Handle> {
        self.runtime.get()
    }

    /// Returns the party that the run counts for once its client has left.
    pub(in crate::engine) fn bucket(&self) -> Bucket {
        self.party.bucket(&self.key)
    }

    /// Returns whether the run is dropped with its client.
    pub(in crate::engine) fn is_attached(&self) -> bool {
        self.is(ATTACHED)
    }

    /// Returns whether the client has left, and the run goes on without it.
    pub(crate) fn is_detached(&self) -> bool {
        self.is(DETACHED)
    }

    /// Records that the client has left.
    pub(in crate::engine) fn detach(&self) {
        self.set(DETACHED);
    }

    /// Records that the claim is being ended. From here on that has to be finished, whether the caller stays or not.
    pub(super) fn begin_end(&self) {
        self.set(ENDING);
        if self.is_attached() {
            self.unset(ATTACHED);
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is(ENDING)
    }

    /// Returns whether the claim is known to be another's, or gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.is(LOST)
    }

    /// Records that the claim is lost, and wakes those who wait for that.
    pub(super) fn lose(&self) {
        self.set(LOST);
        self.changed.notify_waiters();
    }

    /// Records that the lease has lapsed without a renewal, so that another request may have taken the key over.
    pub(super) fn set_overdue(&self) {
        self.set(OVERDUE);
        self.changed.notify_waiters();
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.is(OVERDUE)
    }

    /// Returns when the claim, or its last renewal that succeeded, was sent; `None` if there is no lease to renew.
    pub(super) fn renewed(&self) -> Option<Instant> {
        // Nobody else can have a key whose transaction has not ended.
        let first = self.sent.filter(|_| self.slot.is_none())?;
        first.checked_add(Duration::from_millis(self.renewed_after.load(Ordering::Acquire)))
    }

    /// Records a renewal that succeeded, by the moment at which it was sent.
    pub(super) fn set_renewed(&self, sent: Instant) {
        let after = self.sent.map_or(Duration::ZERO, |first| sent.duration_since(first));
        self.renewed_after.store(millis(after), Ordering::Release);
        if self.is_overdue() {
            self.unset(OVERDUE);
        }
    }

    /// Returns whether the claim is lost, or may be lost since its lease has lapsed.
    pub(crate) fn may_be_lost(&self) -> bool {
        let lapsed = || self.renewed()?.checked_add(self.claim.lease).map(|end| end <= Instant::now());
        self.is(LOST | OVERDUE) || lapsed().unwrap_or_default()
    }

    /// Resolves when the claim is lost or overdue.
    pub(crate) async fn lost(&self) {
        loop {
            let changed = self.changed.notified();
            if self.may_be_lost() {
                return;
            }
            changed.await;
        }
    }

    /// Returns what the handler has directed so far.
    pub(crate) fn directives(&self) -> HandlerDirectives {
        if self.is(DIRECTED) { *locked(&self.directives) } else { HandlerDirectives::default() }
    }

    /// Changes what the handler has directed.
    pub(crate) fn direct(&self, change: impl FnOnce(&mut HandlerDirectives)) {
        change(&mut locked(&self.directives));
        self.set(DIRECTED);
    }
}
