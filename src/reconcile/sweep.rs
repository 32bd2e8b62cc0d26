//! One look at all abandoned records.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    Abandoned, SweepReport,
    case::{RecordResult, claim_key, is_own},
};
use crate::{
    Event, Reconciler, StoreError,
    store::{Filter, Record, StoreErrorKind},
};

/// How many records are asked of the store at a time.
const PAGE: usize = 100;

/// For how many leases a record is left alone, and for how long if nothing is known of its lease.
const LEASES: u32 = 10;
const DEFAULT_GRACE: Duration = Duration::from_secs(5 * 60);

impl Reconciler {
    fn grace_of(&self, record: &Record) -> Duration {
        self.grace.unwrap_or(if record.lease.is_zero() { DEFAULT_GRACE } else { record.lease.saturating_mul(LEASES) })
    }

    /// Looks through the store, and reports it.
    pub(super) async fn sweep(&self, stopping: &AtomicBool) -> Result<SweepReport, StoreError> {
        let start = Instant::now();
        let swept = self.sweep_all(stopping).await;
        self.worker.observers.report(&match &swept {
            Ok(sweep) => Event::Reconciled { sweep, took: start.elapsed() },
            Err(error) => Event::ReconcileFailed { error },
        });
        swept
    }

    async fn sweep_all(&self, stopping: &AtomicBool) -> Result<SweepReport, StoreError> {
        let (mut sweep, mut tasks, mut seen) = (SweepReport::default(), JoinSet::new(), HashSet::new());
        let mut after = None;
        let listed = loop {
            let page = self.worker.store.list(Filter::Abandoned, after, PAGE);
            let page = match timeout(self.worker.engine.store_timeout, page).await {
                Ok(Ok(page)) => page,
                Ok(Err(error)) => break Err(error),
                Err(_) => break Err(StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time")),
            };
            for entry in page.entries.into_iter().filter(|entry| !is_own(&entry.key)) {
                let secret = self.worker.engine.secret.clone();
                let abandoned = Abandoned { entry, dry_run: self.dry_run, secret };
                if abandoned.record().lapsed_for < self.grace_of(abandoned.record())
                    || self.only.as_ref().is_some_and(|only| !only(&abandoned))
                {
                    continue;
                }
                let entry = abandoned.entry;
                // The store may list one twice.
                let Some(case) = claim_key(&entry).filter(|case| seen.insert(case.clone())) else { continue };
                while tasks.len() >= self.concurrency {
                    join_one(&mut tasks, &mut sweep).await;
                }
                if stopping.load(SeqCst) {
                    break;
                }
                let (worker, dry_run) = (self.worker.clone(), self.dry_run);
                tasks.spawn(async move {
                    if dry_run {
                        return RecordResult::of(&worker.ask(entry, true).await);
                    }
                    worker.exclusively(case, worker.resolve(entry)).await
                });
            }
            after = page.next;
            if after.is_none() || stopping.load(SeqCst) {
                break Ok(());
            }
        };
        #[cfg(feature = "_sql")]
        let listed = listed.and(self.sweep_outboxes(stopping, &mut tasks, &mut seen, &mut sweep).await);
        while !tasks.is_empty() {
            join_one(&mut tasks, &mut sweep).await;
        }
        listed?;
        if !stopping.load(SeqCst) {
            self.worker.retain_backoff(&seen);
        }
        Ok(sweep)
    }
}

pub(super) async fn join_one(tasks: &mut JoinSet<RecordResult>, sweep: &mut SweepReport) {
    if let Some(ended) = tasks.join_next().await {
        // Tasks panic or are aborted only with the runtime.
        ended.unwrap_or(RecordResult::Failed).count_in(sweep);
    }
}
