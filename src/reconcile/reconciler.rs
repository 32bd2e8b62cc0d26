use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

#[cfg(feature = "_sql")]
use super::outbox_source::OutboxSource;
use super::{Abandoned, Resolution, SweepReport, worker::Worker};
use crate::{
    Observer, RunPolicy, Secret, StoreError,
    engine::Engine,
    store::StoreAdmin,
    value::{Observers, nonzero},
};

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
    pub(super) worker: Worker,
    pub(super) only: Option<Arc<Only>>,
    pub(super) grace: Option<Duration>,
    pub(super) concurrency: usize,
    pub(super) dry_run: bool,
    #[cfg(feature = "_sql")]
    pub(super) outboxes: Vec<OutboxSource>,
}

pub(super) type Only = dyn Fn(&Abandoned) -> bool + Send + Sync;
impl Reconciler {
    /// Creates a reconciler that looks into `store`, and asks `application` about each abandoned record that it finds.
    ///
    /// If the closure panics, the record is left. The closure should bound its own time: no other process takes its
    /// record meanwhile.
    pub fn new<F>(store: impl StoreAdmin, application: impl Fn(Abandoned) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Resolution> + Send + 'static,
    {
        let store: Arc<dyn StoreAdmin> = Arc::new(store);
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self {
            worker: Worker {
                engine: Arc::new(Engine::new(store.clone())),
                store,
                application: Arc::new(move |abandoned| Box::pin(application(abandoned))),
                observers: Observers::default(),
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
            outboxes: Vec::new(),
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
        self.worker.backoff = (first, most);
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
        self.worker.retention = retention;
        self
    }

    /// Sets how long a record stays claimed by a reconciler that does not renew its claim. Default: 30 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.worker.policy.apply(RunPolicy::new().lease(lease));
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
        Arc::make_mut(&mut self.worker.engine).store_timeout = timeout;
        self
    }

    /// Derives [child keys](Abandoned::child_key) with the secrets of the layers whose records these are. Default:
    /// none.
    pub fn secret(mut self, secret: Secret) -> Self {
        Arc::make_mut(&mut self.worker.engine).secret = Some(secret);
        self
    }

    /// Adds an observer, which receives [`Event::Reconciled`](crate::Event::Reconciled) or
    /// [`ReconcileFailed`](crate::Event::ReconcileFailed) after each sweep, and
    /// [`OutboxStuck`](crate::Event::OutboxStuck) for each message that the application was asked about. Several calls add
    /// up.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.worker.observers.add(observer);
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
}

impl fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciler")
            .field("concurrency", &self.concurrency)
            .field("dry_run", &self.dry_run)
            .field("retention", &self.worker.retention)
            .field("backoff", &self.worker.backoff)
            .finish_non_exhaustive()
    }
}
