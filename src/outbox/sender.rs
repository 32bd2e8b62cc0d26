use std::{error::Error, future::Future};

use crate::store::StagedMessage;

/// What hands a message to a broker.
///
/// Every closure that takes an [`StagedMessage`] and gives a future of a `Result<(), E>` is one.
///
/// `Ok` says that the broker has the message for good: wait for its confirmation, or a message is marked as sent that
/// nobody has. The same message may be handed over more than once; what a consumer knows it by is its id, so send that
/// along.
///
/// ```
/// use tower_idempotency::{outbox::{StagedMessage, Relay}, store::Outbox};
///
/// # fn relay(outbox: Outbox<sqlx::Sqlite>, broker: std::sync::Arc<tokio::sync::Mutex<Vec<String>>>) {
/// let relay = Relay::new(outbox, move |outgoing: StagedMessage| {
///     let broker = broker.clone();
///     async move {
///         broker.lock().await.push(outgoing.message.id);
///         Ok::<_, std::io::Error>(())
///     }
/// });
/// # }
/// ```
///
/// # Cancellation
///
/// The future is dropped when it takes longer than [`Relay::send_timeout`](super::Relay::send_timeout), and when the
/// relay is. The message is sent again then.
pub trait Sender: Send + Sync + 'static {
    /// Sends a message, and resolves once the broker has confirmed it.
    fn send(&self, outgoing: StagedMessage) -> impl Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send;
}

impl<F, A, E> Sender for F
where
    F: Fn(StagedMessage) -> A + Send + Sync + 'static,
    A: Future<Output = Result<(), E>> + Send,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    async fn send(&self, outgoing: StagedMessage) -> Result<(), Box<dyn Error + Send + Sync>> {
        self(outgoing).await.map_err(Into::into)
    }
}
