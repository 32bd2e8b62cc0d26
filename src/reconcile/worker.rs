//! The work on one record, which one process at a time does.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{sleep, timeout};

use super::{Abandoned, Resolution, case::RecordResult};
use crate::{
    RunPolicy,
    engine::{CatchUnwind, ClaimRequest, Completion, Engine, FnSettings, NotRun, Outcome, Standing},
    event::NotKept,
    store::{Claim, Claimant, Entry, Finished, RecordKey, Release, Settlement, StoreAdmin, StoreFuture},
    value::{Observers, Resolved, RunSettings},
};

/// How long it is remembered who had a record that is no longer abandoned.
const AFTERWARDS: Duration = Duration::from_secs(60);

const TRIES: u32 = 3;

type ResolutionFuture = Pin<Box<dyn Future<Output = Resolution> + Send>>;

/// Where one record is worked at.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) store: Arc<dyn StoreAdmin>,
    pub(super) engine: Arc<Engine>,
    pub(super) application: Arc<dyn Fn(Abandoned) -> ResolutionFuture + Send + Sync>,
    /// Of the sweeps. What the engine reports of its own claims is for nobody.
    pub(super) observers: Observers,
    /// Of the claims of cases.
    pub(super) policy: Resolved<RunPolicy>,
    /// Of the records that are settled.
    pub(super) retention: Duration,
    pub(super) backoff: (Duration, Duration),
    /// How often a case was left.
    pub(super) left: Arc<Mutex<HashMap<RecordKey, u32>>>,
}

impl Worker {
    /// Works on a case that no other process works on.
    ///
    /// The case stays claimed for as long as that takes. A case that is left stays settled for as long as it is to be
    /// left alone, whichever process asks.
    pub(super) async fn exclusively(
        &self,
        case: RecordKey,
        working: impl Future<Output = RecordResult>,
    ) -> RecordResult {
        let policy = RunSettings { retention: self.pause(&case), ..*self.policy };
        let claim = Claim::new(policy.lease, policy.horizon());
        let request = ClaimRequest::new(case.clone(), claim, policy.wait, Arc::as_ptr(&self.engine).addr());
        let settings = FnSettings { policy, counts: None };
        let work = |_| async move {
            let ended = working.await;
            let completion = match ended {
                RecordResult::Left | RecordResult::Failed => {
                    Completion::Settle(Err(NotKept::NotSerializable), policy.retention)
                }
                RecordResult::Settled | RecordResult::Released | RecordResult::Discarded | RecordResult::Skipped => {
                    Completion::Release(AFTERWARDS)
                }
            };
            (ended, completion)
        };
        match self.engine.execute(request, settings, work).await {
            Outcome::Completed { value: ended, recorded: true | false } => {
                if matches!(ended, RecordResult::Left | RecordResult::Failed) {
                    self.leave(case);
                }
                ended
            }
            Outcome::NotRun(NotRun::Settled(..) | NotRun::Running(_))
            | Outcome::Overtaken(Standing::Settled(_) | Standing::Running(_)) => RecordResult::Skipped,
            Outcome::RolledBack { .. }
            | Outcome::CommitUnknown
            | Outcome::NotRun(
                NotRun::Mismatch(_)
                | NotRun::Incompatible
                | NotRun::OutcomeUnknown
                | NotRun::NotIssued
                | NotRun::TooManyTasks(_)
                | NotRun::Unavailable { .. },
            ) => RecordResult::Failed,
        }
    }

    /// Brings an abandoned record to an end.
    pub(super) async fn resolve(&self, entry: Entry) -> RecordResult {
        let seen = entry.record.claimant;
        // It may have ended between the list and the claim, in another process's hands too.
        let entry = match timeout(self.engine.store_timeout, self.store.inspect(&entry.key)).await {
            Ok(Ok(Some(record))) if record.is_abandoned() && record.claimant == seen => Entry::new(entry.key, record),
            Ok(Ok(_)) => return RecordResult::Skipped,
            Ok(Err(_)) | Err(_) => return RecordResult::Failed,
        };
        let key = entry.key.clone();
        let resolution = self.ask(entry, false).await;
        let ended = self.carry_out(&key, seen, resolution).await;
        #[cfg(feature = "tracing")]
        tracing::info!(key = self.engine.log_id(&key), outcome = ?ended, "reconciled");
        ended
    }

    /// Asks the application. Its panics are reported by the panic hook.
    pub(super) async fn ask(&self, entry: Entry, dry_run: bool) -> Resolution {
        let abandoned = Abandoned { entry, dry_run, secret: self.engine.secret.clone() };
        let asked = async move { (self.application)(abandoned).await };
        CatchUnwind::new(asked).await.unwrap_or(Resolution::Leave)
    }

    async fn carry_out(&self, key: &RecordKey, seen: Claimant, resolution: Resolution) -> RecordResult {
        // One for all tries, so that the store recognizes a repetition.
        let own = Claimant::random();
        match resolution {
            Resolution::Settle(payload) => {
                let payload: Option<Bytes> = payload.into();
                let settlement = Settlement::new(own, payload, self.retention);
                self.retry(RecordResult::Settled, || self.store.settle_as(key, seen, &settlement)).await
            }
            Resolution::Release => {
                let release = Release::new(own, self.retention);
                self.retry(RecordResult::Released, || self.store.release_as(key, seen, &release)).await
            }
            Resolution::Leave => RecordResult::Left,
        }
    }

    async fn retry<'a>(&self, done: RecordResult, call: impl Fn() -> StoreFuture<'a, Finished>) -> RecordResult {
        for again in 0..TRIES {
            if again > 0 {
                sleep(Duration::from_millis(100) * again).await;
            }
            match timeout(self.engine.store_timeout, call()).await {
                Ok(Ok(Finished::Done | Finished::AlreadyDone)) => return done,
                Ok(Ok(Finished::Refused(_))) => break,
                Ok(Err(error)) if !error.is_temporary() => break,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        RecordResult::Failed
    }

    /// Returns how long a case is left alone if it is left now.
    fn pause(&self, case: &RecordKey) -> Duration {
        let times = self.left().get(case).copied().unwrap_or(0);
        let (first, most) = self.backoff;
        first.saturating_mul(1 << times.min(20)).min(most).max(Duration::from_millis(1))
    }

    fn leave(&self, case: RecordKey) {
        let mut left = self.left();
        let times = left.entry(case).or_default();
        *times = times.saturating_add(1);
    }

    pub(super) fn retain_backoff(&self, seen: &HashSet<RecordKey>) {
        self.left().retain(|case, _| seen.contains(case));
    }

    fn left(&self) -> MutexGuard<'_, HashMap<RecordKey, u32>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
