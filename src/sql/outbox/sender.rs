use std::{error::Error, future::Future};

use super::StagedMessage;

/// Hands a message to a broker.
///
/// It is implemented for closures that take a [`StagedMessage`] and return a future of a `Result<(), E>`.
///
/// `Ok` means that the broker has stored the message: wait for its confirmation, or a message that the broker has lost
/// is marked as sent. The same message may be handed over more than once; a consumer recognises it by its id, so send
/// the id along.
///
/// ```
/// use tower_idempotency::sql::outbox::{Outbox, Relay, StagedMessage};
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
/// The future is dropped if it takes longer than [`Relay::send_timeout`](super::Relay::send_timeout), or if the relay
/// is dropped. The message is then sent again.
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
