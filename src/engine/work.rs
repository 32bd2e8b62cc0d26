//! The state of a run that others than its future look at: whether its client has left, whether its claim is lost, what
//! the handler has directed.
//!
//! The stage decides what dropping the future means, so it is set before the claim's effects can be observed and read
//! by `Drop` without a lock. *Lost* is final: the store has said so. *Overdue* is not: the lease has lapsed without a
//! renewal, and a renewal that succeeds ends it.

use std::sync::{
    Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use tokio::{runtime::Handle, sync::Notify, time::Instant};

use super::Party;
use crate::value::{HandlerDirectives, RecordKey};

/// How far a run has come, which decides what happens to it if its client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Nothing is claimed: the run is dropped with its client.
    Open = 0,
    /// Claimed, and dropped with its client all the same, by `cancel_on_disconnect`. Its claim lapses.
    Attached = 1,
    /// Claimed: it goes on as a background task if its client disconnects.
    Claimed = 2,
}

/// The state of one run, shared by its future, its heartbeat, its handler and its guard.
///
/// Everything in it is atomic or behind a lock that is held for one assignment, so no lock is ever held across an
/// await.
#[derive(Debug)]
pub(crate) struct Work {
    /// The `Stage`, as its number.
    stage: AtomicU8,
    /// The client has left.
    detached: AtomicBool,
    /// The lease has lapsed without a renewal.
    overdue: AtomicBool,
    /// The store has said that the claim is gone.
    lost: AtomicBool,
    /// When the lease ends if it is not renewed; `None` if there is none to renew.
    held_until: Mutex<Option<Instant>>,
    /// The request body broke while the handler was reading it.
    request_broken: AtomicBool,
    /// Notified when the claim is lost or overdue.
    changed: Notify,
    wishes: Mutex<HandlerDirectives>,
    claimed: OnceLock<(RecordKey, Party)>,
    runtime: OnceLock<Handle>,
}

impl Work {
    /// Creates the state of a run in the current runtime, which takes over if its client disconnects.
    pub(crate) fn new() -> Self {
        let work = Self {
            stage: AtomicU8::new(Stage::Open as u8),
            detached: AtomicBool::new(false),
            overdue: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            held_until: Mutex::new(None),
            request_broken: AtomicBool::new(false),
            changed: Notify::new(),
            wishes: Mutex::new(HandlerDirectives::default()),
            claimed: OnceLock::new(),
            runtime: OnceLock::new(),
        };
        work.capture_runtime();
        work
    }

    /// Remembers the runtime of the first poll.
    pub(super) fn capture_runtime(&self) {
        if self.runtime.get().is_none()
            && let Ok(current) = Handle::try_current()
        {
            let _ = self.runtime.set(current);
        }
    }

    pub(super) fn runtime(&self) -> Option<&Handle> {
        self.runtime.get()
    }

    /// Returns how far the run has come.
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Open,
            1 => Stage::Attached,
            _ => Stage::Claimed,
        }
    }

    /// Sets how far the run has come.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    /// What was claimed and for whom, if anything was.
    pub(super) fn claim(&self) -> Option<&(RecordKey, Party)> {
        self.claimed.get()
    }

    /// Records the grant: from here on the run is finished even if it is dropped.
    pub(super) fn claimed(&self, key: &RecordKey, party: &Party, stage: Stage) {
        let _ = self.claimed.set((key.clone(), party.clone()));
        self.enter(stage);
    }

    /// The client has left, and the work goes on without it.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    /// Records that the client has left.
    pub(super) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }

    /// The claim is known to be another's, or gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Records that the claim is lost, and wakes those who wait for that.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Records whether the lease has lapsed without a renewal, so that another request may have taken the key over.
    pub(super) fn set_overdue(&self, overdue: bool) {
        self.overdue.store(overdue, Ordering::Release);
        if overdue {
            self.changed.notify_waiters();
        }
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Acquire)
    }

    /// Records the end of the lease: until then no other request can have the key.
    pub(super) fn hold_until(&self, end: Option<Instant>) {
        *self.held_until.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    /// Returns whether the claim is lost, or may be lost since its lease has lapsed.
    pub(crate) fn may_be_lost(&self) -> bool {
        let held_until = || *self.held_until.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_lost() || self.is_overdue() || held_until().is_some_and(|end| end <= Instant::now())
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

    /// The request broke while the work was reading it.
    pub(crate) fn break_request(&self) {
        self.request_broken.store(true, Ordering::Release);
    }

    pub(crate) fn is_request_broken(&self) -> bool {
        self.request_broken.load(Ordering::Acquire)
    }

    pub(crate) fn wishes(&self) -> HandlerDirectives {
        *self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what the handler has directed.
    pub(crate) fn wish(&self, change: impl FnOnce(&mut HandlerDirectives)) {
        change(&mut self.wishes.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
