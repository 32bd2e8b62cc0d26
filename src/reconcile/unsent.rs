use std::{
    collections::HashSet,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};

use super::{
    SweepReport, Unsent, UnsentResolution,
    case::{Ended, case_of_message},
    reconciler::{Worker, one_ends},
};
use crate::{
    Reconciler, StoreError,
    engine::CatchUnwind,
    sql::{
        SqlDatabase,
        outbox::{Outbox, StagedMessage},
    },
    store::{RecordKey, StoreErrorKind},
};

/// How many messages of an outbox a sweep asks about. Messages that are left come first the next time too.
const AT_MOST: usize = 1000;

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
type ClaimRequest = Pin<Box<dyn Future<Output = UnsentResolution> + Send>>;

/// An outbox of any database.
trait Source: Send + Sync {
    fn unsent(&self, age: Duration) -> Answer<'_, Vec<StagedMessage>>;
    fn discard<'a>(&'a self, id: &'a str) -> Answer<'a, bool>;
}

impl<D: SqlDatabase> Source for Outbox<D> {
    fn unsent(&self, age: Duration) -> Answer<'_, Vec<StagedMessage>> {
        Box::pin(Self::unsent(self, age, AT_MOST))
    }

    fn discard<'a>(&'a self, id: &'a str) -> Answer<'a, bool> {
        Box::pin(Self::discard(self, id))
    }
}

/// An outbox whose messages are asked about, and the closure that is asked.
#[derive(Clone)]
pub(super) struct OutboxSource {
    source: Arc<dyn Source>,
    age: Duration,
    application: Arc<dyn Fn(Unsent) -> ClaimRequest + Send + Sync>,
}

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
        self.shelves.push(OutboxSource {
            source: Arc::new(outbox),
            age,
            application: Arc::new(move |unsent| Box::pin(application(unsent))),
        });
        self
    }
}

impl Reconciler {
    /// Asks about the unsent messages of each outbox.
    pub(super) async fn sweep_shelves(
        &self,
        stopping: &AtomicBool,
        tasks: &mut JoinSet<Ended>,
        seen: &mut HashSet<RecordKey>,
        sweep: &mut SweepReport,
    ) -> Result<(), StoreError> {
        let mut listed = Ok(());
        for outbox in &self.shelves {
            let unsent = match timeout(self.desk.engine.store_timeout, outbox.unsent()).await {
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
                let case = case_of_message(&outgoing.message.id);
                let Some(case) = case.filter(|case| seen.insert(case.clone())) else { continue };
                while tasks.len() >= self.concurrency {
                    one_ends(tasks, sweep).await;
                }
                if stopping.load(SeqCst) {
                    return listed;
                }
                let (desk, source, dry_run) = (self.desk.clone(), outbox.clone(), self.dry_run);
                tasks.spawn(async move {
                    if dry_run {
                        return match source.ask(outgoing, true).await {
                            UnsentResolution::Discard => Ended::Discarded,
                            UnsentResolution::Leave => Ended::Left,
                        };
                    }
                    desk.alone(case, source.resolve(&desk, outgoing)).await
                });
            }
        }
        listed
    }
}

impl OutboxSource {
    async fn unsent(&self) -> Result<Vec<StagedMessage>, StoreError> {
        self.source.unsent(self.age).await
    }

    /// Asks the application. Its panics are reported by the panic hook.
    async fn ask(&self, outgoing: StagedMessage, dry_run: bool) -> UnsentResolution {
        let asked = async move { (self.application)(Unsent { outgoing, dry_run }).await };
        CatchUnwind::new(asked).await.unwrap_or(UnsentResolution::Leave)
    }

    /// Asks about a message, and does what the application decides.
    async fn resolve(&self, desk: &Worker, outgoing: StagedMessage) -> Ended {
        let id = outgoing.message.id.clone();
        let ended = match self.ask(outgoing, false).await {
            UnsentResolution::Leave => Ended::Left,
            UnsentResolution::Discard => match timeout(desk.engine.store_timeout, self.source.discard(&id)).await {
                Ok(Ok(true)) => Ended::Discarded,
                // It was sent meanwhile, or is being sent.
                Ok(Ok(false)) => Ended::Skipped,
                Ok(Err(_)) | Err(_) => Ended::Failed,
            },
        };
        #[cfg(feature = "tracing")]
        tracing::info!(message = id, outcome = ?ended, "reconciled");
        ended
    }
}
