use std::{
    collections::{HashMap, HashSet},
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{sync::Notify, task::JoinSet, time::timeout};

#[cfg(feature = "_sql")]
use super::unsent::OutboxSource;
use super::{
    Abandoned, Resolution, SweepReport,
    case::{Ended, claim_key, is_own},
};
use crate::{
    RunPolicy, Secret, StoreError,
    engine::Engine,
    store::{Filter, Record, RecordKey, StoreAdmin, StoreErrorKind},
    value::{Resolved, nonzero},
};

/// How many records are asked of the store at a time.
const PAGE: usize = 100;

/// For how many leases a record is left alone, and for how long if nothing is known of its lease.
const LEASES: u32 = 10;
const UNTOLD: Duration = Duration::from_secs(5 * 60);

/// A reconciler: it finds operations that began and never ended, and asks the application about them.
///
/// The closure finds out how the operation ended, from the other side's records, and decides what becomes of the
/// record:
///
/// ```
/// # use bytes::Bytes;
/// # use http::Response;
/// # async fn payment_of(order: &str) -> Result<Option<String>, String> { Ok(Some(format!("payment of {order}"))) }
/// use tower_idempotency::{MemoryStore, Reconciler, reconcile::{Payload, Resolution}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tower_idempotency::StoreError> {
/// let reconciler = Reconciler::new(MemoryStore::new(), |abandoned| async move {
///     match payment_of(abandoned.key().key()).await {
///         Ok(Some(payment)) => Resolution::Settle(Payload::response(&Response::new(Bytes::from(payment)))),
///         Ok(None) => Resolution::Release,
///         Err(_) => Resolution::Leave,
///     }
/// })
/// .only(|abandoned| abandoned.key().route() == "/payments");
///
/// let sweep = reconciler.run_once().await?;
/// assert_eq!(sweep.settled, 0);
/// # Ok(())
/// # }
/// ```
///
/// # One process at a time
///
/// Each process may have a reconciler. Before a reconciler asks about a record, it claims the record for itself in the
/// same store, by a lease that it renews while the application works, and reads the record once more. A process that
/// stands still past its lease can be overtaken, as everywhere; then the application is asked twice, and the store
/// takes one answer. A runner that comes back meanwhile keeps its record, and the application's answer is not taken.
///
/// A record that is [left](Resolution::Leave) is left alone by all processes for the same time.
///
/// # Where it runs
///
/// A reconciler runs inside a Tokio runtime with its timer enabled, on which the closure's futures are spawned as
/// tasks. If a future of this type is dropped, these tasks are aborted, and their claims lapse.
#[derive(Clone)]
#[must_use = "it does nothing until it is run"]
pub struct Reconciler {
    pub(super) desk: Worker,
    only: Option<Arc<Only>>,
    grace: Option<Duration>,
    pub(super) concurrency: usize,
    pub(super) dry_run: bool,
    #[cfg(feature = "_sql")]
    pub(super) shelves: Vec<OutboxSource>,
}

type Only = dyn Fn(&Abandoned) -> bool + Send + Sync;
type ClaimRequest = Pin<Box<dyn Future<Output = Resolution> + Send>>;

/// Where one record is worked at.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) operator: Arc<dyn StoreAdmin>,
    pub(super) engine: Engine,
    pub(super) application: Arc<dyn Fn(Abandoned) -> ClaimRequest + Send + Sync>,
    /// Of the claims of cases.
    pub(super) policy: Resolved<RunPolicy>,
    /// Of the records that are settled.
    pub(super) retention: Duration,
    backoff: (Duration, Duration),
    /// How often a case was left.
    left: Arc<Mutex<HashMap<RecordKey, u32>>>,
}

impl Reconciler {
    /// Creates a reconciler that looks into `store`, and asks `application` about each abandoned record that it finds.
    ///
    /// If the closure panics, the record is left. The closure should bound its own time: no other process takes its
    /// record meanwhile.
    pub fn new<F>(store: impl StoreAdmin, application: impl Fn(Abandoned) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Resolution> + Send + 'static,
    {
        let operator: Arc<dyn StoreAdmin> = Arc::new(store);
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self {
            desk: Worker {
                engine: Engine::new(operator.clone()),
                operator,
                application: Arc::new(move |abandoned| Box::pin(application(abandoned))),
                policy: RunPolicy::new().into(),
                retention: minutes(24 * 60),
                backoff: (minutes(1), minutes(60)),
                left: Arc::default(),
            },
            only: None,
            grace: None,
            concurrency: 4,
            dry_run: false,
            #[cfg(feature = "_sql")]
            shelves: Vec::new(),
        }
    }

    /// Sets which records are asked about, such as those of one route. Default: all that are abandoned.
    pub fn only(self, only: impl Fn(&Abandoned) -> bool + Send + Sync + 'static) -> Self {
        Self { only: Some(Arc::new(only)), ..self }
    }

    /// Sets how long a lease must have lapsed before its record is asked about. Default: ten times the
    /// [lease](crate::store::Record::lease) of the record; five minutes if its store does not report the lease.
    ///
    /// A runner that has lost its store cannot renew its lease, and may be about to act all the same. If its record is
    /// released meanwhile, the operation runs twice, even with at most once. So wait for as long as a runner may go on,
    /// and let handlers check [`Operation::is_lost`](crate::Operation::is_lost) right before their effect.
    ///
    /// A record that may be taken over is there for ten leases from its last renewal, or for its route's retention if
    /// that is longer. If the retention is short, take a shorter grace, or nothing is left to ask about.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace: Some(grace), ..self }
    }

    /// Sets how many records this reconciler asks the application about at once. Default: 4.
    ///
    /// # Panics
    ///
    /// Panics if `concurrency` is 0.
    #[track_caller]
    pub fn concurrency(self, concurrency: usize) -> Self {
        assert!(concurrency > 0, "a reconciler that never asks");
        Self { concurrency, ..self }
    }

    /// Sets how long a record that was left is not asked about: the first time, which is doubled each time, and the
    /// longest time. Default: one minute, one hour.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.desk.backoff = (first, most);
        self
    }

    /// Sets how long a record that is settled answers duplicates from then on, and how long one that is released
    /// remembers its attempts and its caller. Default: 24 hours.
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(mut self, retention: Duration) -> Self {
        assert!(retention >= Duration::from_millis(1), "a retention of {retention:?} remembers nothing");
        self.desk.retention = retention;
        self
    }

    /// Sets how long a record stays claimed by a reconciler that does not renew its claim. Default: 30 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.desk.policy.apply(RunPolicy::new().lease(lease));
        self
    }

    /// Sets how long the store may take for an answer. Default: 5 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        let timeout = nonzero("store timeout", timeout);
        self.desk.engine.store_timeout = timeout;
        self
    }

    /// Derives [child keys](Abandoned::child_key) with the secrets of the layers whose records these are. Default:
    /// none.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.desk.engine.secret = Some(secret);
        self
    }

    /// Turns on the dry run: the application is asked, sees that it is a [dry run](Abandoned::is_dry_run), and nothing
    /// is claimed or written.
    ///
    /// The application's answers are counted. It may be asked about records that another process works on.
    pub fn dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }

    /// Looks once through all records that are abandoned now.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not list them. The cases begun by then have been brought to an end.
    pub async fn run_once(&self) -> Result<SweepReport, StoreError> {
        self.sweep(&AtomicBool::new(false)).await
    }

    /// Looks through all records every `interval`, until `stop` resolves. Then the cases in progress are brought to an
    /// end, and nothing further is begun.
    ///
    /// A store that fails is asked again after the interval.
    pub async fn run(&self, interval: Duration, stop: impl Future<Output = ()>) {
        let (stopping, awake) = (AtomicBool::new(false), Notify::new());
        let mut working = pin!(async {
            while !stopping.load(SeqCst) {
                let swept = self.sweep(&stopping).await;
                #[cfg(feature = "tracing")]
                match &swept {
                    Ok(sweep) => tracing::debug!(?sweep, "reconciled"),
                    Err(error) => tracing::warn!(error = error as &dyn std::error::Error, "could not reconcile"),
                }
                drop(swept);
                // Whether it was the interval or `stop` makes no difference.
                let _ = timeout(interval, awake.notified()).await;
            }
        });
        let mut stop = pin!(stop);
        poll_fn(|cx| {
            if !stopping.load(SeqCst) && stop.as_mut().poll(cx).is_ready() {
                stopping.store(true, SeqCst);
                awake.notify_one();
            }
            working.as_mut().poll(cx)
        })
        .await;
    }

    fn grace_of(&self, record: &Record) -> Duration {
        self.grace.unwrap_or(if record.lease.is_zero() { UNTOLD } else { record.lease.saturating_mul(LEASES) })
    }

    async fn sweep(&self, stopping: &AtomicBool) -> Result<SweepReport, StoreError> {
        let (mut sweep, mut tasks, mut seen) = (SweepReport::default(), JoinSet::new(), HashSet::new());
        let mut after = None;
        let listed = loop {
            let page = self.desk.operator.list(Filter::Abandoned, after, PAGE);
            let page = match timeout(self.desk.engine.store_timeout, page).await {
                Ok(Ok(page)) => page,
                Ok(Err(error)) => break Err(error),
                Err(_) => break Err(StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time")),
            };
            for entry in page.entries.into_iter().filter(|entry| !is_own(&entry.key)) {
                let secret = self.desk.engine.secret.clone();
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
                    one_ends(&mut tasks, &mut sweep).await;
                }
                if stopping.load(SeqCst) {
                    break;
                }
                let (desk, dry_run) = (self.desk.clone(), self.dry_run);
                tasks.spawn(async move {
                    if dry_run {
                        return Ended::of(&desk.ask(entry, true).await);
                    }
                    desk.alone(case, desk.resolve(entry)).await
                });
            }
            after = page.next;
            if after.is_none() || stopping.load(SeqCst) {
                break Ok(());
            }
        };
        #[cfg(feature = "_sql")]
        let listed = listed.and(self.sweep_shelves(stopping, &mut tasks, &mut seen, &mut sweep).await);
        while !tasks.is_empty() {
            one_ends(&mut tasks, &mut sweep).await;
        }
        listed?;
        if !stopping.load(SeqCst) {
            self.desk.forget_all_but(&seen);
        }
        Ok(sweep)
    }
}

pub(super) async fn one_ends(tasks: &mut JoinSet<Ended>, sweep: &mut SweepReport) {
    if let Some(ended) = tasks.join_next().await {
        // Tasks panic or are aborted only with the runtime.
        sweep.count(ended.unwrap_or(Ended::Failed));
    }
}

impl Worker {
    /// Returns how long a case is left alone if it is left now.
    pub(super) fn pause(&self, case: &RecordKey) -> Duration {
        let times = self.left().get(case).copied().unwrap_or(0);
        let (first, most) = self.backoff;
        first.saturating_mul(1 << times.min(20)).min(most).max(Duration::from_millis(1))
    }

    pub(super) fn leave(&self, case: RecordKey) {
        let mut left = self.left();
        let times = left.entry(case).or_default();
        *times = times.saturating_add(1);
    }

    fn forget_all_but(&self, seen: &HashSet<RecordKey>) {
        self.left().retain(|case, _| seen.contains(case));
    }

    fn left(&self) -> std::sync::MutexGuard<'_, HashMap<RecordKey, u32>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciler")
            .field("concurrency", &self.concurrency)
            .field("dry_run", &self.dry_run)
            .field("retention", &self.desk.retention)
            .field("backoff", &self.desk.backoff)
            .finish_non_exhaustive()
    }
}
