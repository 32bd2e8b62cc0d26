//! An outbox of any database, whose messages the application is asked about.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{Unsent, UnsentResolution, case::RecordResult, worker::Worker};
use crate::{
    Event, StoreError,
    engine::CatchUnwind,
    sql::{
        SqlDatabase,
        outbox::{Outbox, StagedMessage},
    },
};

/// How many messages of an outbox a sweep asks about. Messages that are left come first the next time too.
const MAX_MESSAGES: usize = 1000;

type OutboxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
type UnsentResolutionFuture = Pin<Box<dyn Future<Output = UnsentResolution> + Send>>;

/// An outbox of any database.
trait UnsentMessages: Send + Sync {
    fn unsent(&self, age: Duration) -> OutboxFuture<'_, Vec<StagedMessage>>;
    fn discard<'a>(&'a self, id: &'a str) -> OutboxFuture<'a, bool>;
}

impl<D: SqlDatabase> UnsentMessages for Outbox<D> {
    fn unsent(&self, age: Duration) -> OutboxFuture<'_, Vec<StagedMessage>> {
        Box::pin(Self::unsent(self, age, MAX_MESSAGES))
    }

    fn discard<'a>(&'a self, id: &'a str) -> OutboxFuture<'a, bool> {
        Box::pin(Self::discard(self, id))
    }
}

/// An outbox whose messages are asked about, and the closure that is asked.
#[derive(Clone)]
pub(super) struct OutboxSource {
    source: Arc<dyn UnsentMessages>,
    age: Duration,
    application: Arc<dyn Fn(Unsent) -> UnsentResolutionFuture + Send + Sync>,
}

impl OutboxSource {
    pub(super) fn new<D, F>(
        outbox: Outbox<D>,
        age: Duration,
        application: impl Fn(Unsent) -> F + Send + Sync + 'static,
    ) -> Self
    where
        D: SqlDatabase,
        F: Future<Output = UnsentResolution> + Send + 'static,
    {
        Self { source: Arc::new(outbox), age, application: Arc::new(move |unsent| Box::pin(application(unsent))) }
    }

    pub(super) async fn unsent(&self) -> Result<Vec<StagedMessage>, StoreError> {
        self.source.unsent(self.age).await
    }

    /// Asks the application. Its panics are reported by the panic hook.
    pub(super) async fn ask(&self, outgoing: StagedMessage, dry_run: bool) -> UnsentResolution {
        let asked = async move { (self.application)(Unsent { outgoing, dry_run }).await };
        CatchUnwind::new(asked).await.unwrap_or(UnsentResolution::Leave)
    }

    /// Asks about a message, and does what the application decides.
    pub(super) async fn resolve(&self, worker: &Worker, outgoing: StagedMessage) -> RecordResult {
        let (id, topic, attempts) = (outgoing.message.id.clone(), outgoing.message.topic.clone(), outgoing.attempt);
        let ended = match self.ask(outgoing, false).await {
            UnsentResolution::Leave => RecordResult::Left,
            UnsentResolution::Discard => match timeout(worker.engine.store_timeout, self.source.discard(&id)).await {
                Ok(Ok(true)) => RecordResult::Discarded,
                // It was sent meanwhile, or is being sent.
                Ok(Ok(false)) => RecordResult::Skipped,
                Ok(Err(_)) | Err(_) => RecordResult::Failed,
            },
        };
        let discarded = ended == RecordResult::Discarded;
        if discarded || ended == RecordResult::Left {
            worker.observers.report(&Event::OutboxStuck { topic: &topic, attempts, discarded });
        }
        #[cfg(feature = "tracing")]
        tracing::info!(message = id, outcome = ?ended, "reconciled");
        ended
    }
}
