//! Messages that stay in an outbox: the setting, and the loop that asks about them.

use std::{
    collections::HashSet,
    future::Future,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};

use super::{
    SweepReport, Unsent, UnsentResolution,
    case::{RecordResult, message_claim_key},
    outbox_source::OutboxSource,
    sweep::join_one,
};
use crate::{
    Reconciler, StoreError,
    sql::{SqlDatabase, outbox::Outbox},
    store::{RecordKey, StoreErrorKind},
};

impl Reconciler {
    /// Adds an outbox. `application` is asked about each message that was staged `age` ago or earlier and is not sent:
    /// up to a thousand of them in a sweep, the oldest first.
    ///
    /// A relay goes on trying all the time, so the answer for a message that may yet be sent is
    /// [`Leave`](UnsentResolution::Leave). A message that can never be sent holds up all messages behind it that have
    /// its key, until it is [discarded](UnsentResolution::Discard).
    ///
    /// One process at a time asks about a message, as about a record: the claims are in the store of the reconciler,
    /// and a message that is left is left by all processes for the same time.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # async fn reconcile(store: tower_idempotency::SqliteStore) -> Result<(), tower_idempotency::StoreError> {
    /// use std::time::Duration;
    /// use tower_idempotency::{Reconciler, reconcile::{Resolution, UnsentResolution}};
    ///
    /// let reconciler = Reconciler::new(store.clone(), |_| async { Resolution::Leave }).unsent(
    ///     store.outbox(),
    ///     Duration::from_secs(60 * 60),
    ///     |unsent| async move {
    ///         // Somebody has to hear of it, whatever is done about it.
    ///         eprintln!("{} was tried {} times", unsent.outgoing().message.id, unsent.outgoing().attempt);
    ///         match unsent.outgoing().message.topic.as_str() {
    ///             "retired" => UnsentResolution::Discard,
    ///             _ => UnsentResolution::Leave,
    ///         }
    ///     },
    /// );
    /// reconciler.run_once().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn unsent<D, F>(
        mut self,
        outbox: Outbox<D>,
        age: Duration,
        application: impl Fn(Unsent) -> F + Send + Sync + 'static,
    ) -> Self
    where
        D: SqlDatabase,
        F: Future<Output = UnsentResolution> + Send + 'static,
    {
        self.outboxes.push(OutboxSource::new(outbox, age, application));
        self
    }
}

impl Reconciler {
    /// Asks about the unsent messages of each outbox.
    pub(super) async fn sweep_outboxes(
        &self,
        stopping: &AtomicBool,
        tasks: &mut JoinSet<RecordResult>,
        seen: &mut HashSet<RecordKey>,
        sweep: &mut SweepReport,
    ) -> Result<(), StoreError> {
        let mut listed = Ok(());
        for outbox in &self.outboxes {
            let unsent = match timeout(self.worker.engine.store_timeout, outbox.unsent()).await {
                Ok(Ok(unsent)) => unsent,
                Ok(Err(error)) => {
                    listed = Err(error);
                    continue;
                }
                Err(_) => {
                    listed = Err(StoreError::new(StoreErrorKind::Timeout, "the outbox did not answer in time"));
                    continue;
                }
            };
            for outgoing in unsent {
                let case = message_claim_key(&outgoing.message.id);
                let Some(case) = case.filter(|case| seen.insert(case.clone())) else { continue };
                while tasks.len() >= self.concurrency {
                    join_one(tasks, sweep).await;
                }
                if stopping.load(SeqCst) {
                    return listed;
                }
                let (worker, source, dry_run) = (self.worker.clone(), outbox.clone(), self.dry_run);
                tasks.spawn(async move {
                    if dry_run {
                        return match source.ask(outgoing, true).await {
                            UnsentResolution::Discard => RecordResult::Discarded,
                            UnsentResolution::Leave => RecordResult::Left,
                        };
                    }
                    worker.exclusively(case, source.resolve(&worker, outgoing)).await
                });
            }
        }
        listed
    }
}
