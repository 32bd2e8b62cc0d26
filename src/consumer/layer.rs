use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;

use super::{Consumer, settings::Settings};
use crate::{
    engine::{Engine, Operation, Permanent},
    value::{Fingerprint, RunPolicy},
};

/// A layer that handles each message once, however often the broker delivers it.
///
/// A closure takes the key out of each message: the business's own number, or the message's id if its producer uses the
/// same id again for a repeated message. The first delivery runs. If the message was handled, a duplicate is to be
/// acknowledged. If the message is still being handled, a duplicate is not to be acknowledged, since the first delivery
/// may still fail. If the service fails, the key is released, and the message is to be requeued.
///
/// A message with a known key and other content is not a duplicate. Otherwise any publisher could use another
/// producer's key, and that producer's message would be acknowledged unread. So a message has a [`Fingerprint`] too:
/// its JSON, if it implements `serde::Serialize` (`new`, with the feature `json`), or what a closure returns for it
/// ([`with_fingerprint`](Self::with_fingerprint)).
///
/// ```
/// # #[cfg(feature = "json")] {
/// use serde::Serialize;
/// use tower::{Layer, Service, ServiceExt, service_fn};
/// use tower_idempotency::{ConsumerLayer, MemoryStore, consumer::{Action, Consumed}};
///
/// #[derive(Serialize)]
/// struct Order {
///     id: Option<String>,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), String> {
/// let layer = ConsumerLayer::new(MemoryStore::new(), "payouts", |order: &Order| order.id.clone());
/// let mut payouts = layer.layer(service_fn(|_: Order| async { Ok::<_, String>("paid") }));
///
/// let order = || Order { id: Some("order-7".into()) };
/// let first = payouts.ready().await?.call(order()).await?;
/// assert_eq!(first, Consumed::Executed("paid"));
///
/// let again = payouts.ready().await?.call(order()).await?;
/// assert_eq!(again, Consumed::AlreadyDone);
/// assert_eq!(again.action(), Action::Acknowledge);
///
/// let nameless = payouts.ready().await?.call(Order { id: None }).await?;
/// assert_eq!(nameless.action(), Action::DeadLetter);
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
///
/// # What is promised
///
/// The same as for requests in lease mode: if a consumer dies after the effect and before its record, the message runs
/// again, and sees [`attempt`](Operation::attempt)` > 1`. See [`guide::messages`][messages].
///
/// # Where it runs
///
/// Inside a Tokio runtime whose timer is enabled. The lease is renewed for as long as the future is polled, so a
/// message may take any time; the broker's own timeout has to be as long.
///
#[cfg_attr(feature = "json", doc = "[messages]: crate::guide::messages")]
#[cfg_attr(
    not(feature = "json"),
    doc = "[messages]: https://docs.rs/tower-idempotency/latest/tower_idempotency/guide/messages/index.html"
)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct ConsumerLayer<M> {
    pub(super) settings: Settings<M>,
}

impl<M> ConsumerLayer<M> {
    /// Sets whom a key belongs to, such as a tenant. A message for which the closure returns `None` or blank text is
    /// refused as `scope-missing`.
    ///
    /// Default: no scope, so a key is one and the same for all.
    pub fn scope(self, scope: impl Fn(&M) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.scope = Some(Arc::new(scope)))
    }

    /// Sets what counts as the same message: other content under the same key is a [`Mismatch`], never a duplicate.
    ///
    /// Default: the fingerprint that the layer was created with, which is the whole message as JSON or what a closure
    /// returns.
    ///
    /// [`Mismatch`]: super::Consumed::Mismatch
    pub fn fingerprint(self, fingerprint: impl Fn(&M) -> Fingerprint + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.fingerprint = Arc::new(move |message| Ok(fingerprint(message))))
    }

    /// Puts the [`Operation`] into the message before the service receives it: the attempt, keys for downstream calls,
    /// and a signal if the claim is lost.
    ///
    /// ```
    /// use tower_idempotency::{ConsumerLayer, MemoryStore, Operation, fingerprint::Fingerprint};
    ///
    /// struct Order {
    ///     id: String,
    ///     operation: Option<Operation>,
    /// }
    ///
    /// let layer = ConsumerLayer::with_fingerprint(
    ///     MemoryStore::new(),
    ///     "payouts",
    ///     |order: &Order| order.id.clone(),
    ///     |order| Fingerprint::builder().part(&order.id).build(),
    /// )
    /// .operation(|order, operation| order.operation = Some(operation));
    /// # drop(layer);
    /// ```
    pub fn operation(self, operation: impl Fn(&mut M, Operation) + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.operation = Some(Arc::new(operation)))
    }

    /// Sets how often a message is tried at most, including tries that never returned. After that the message is
    /// [`Exhausted`], and its count starts again, so that it runs if somebody requeues it.
    ///
    /// Default: no limit. Brokers may have a limit of their own.
    ///
    /// # Panics
    ///
    /// Panics if `attempts` is 0.
    ///
    /// [`Exhausted`]: super::Consumed::Exhausted
    #[track_caller]
    pub fn attempts(self, attempts: u32) -> Self {
        assert!(attempts > 0, "a message that is never tried");
        self.with(|settings| settings.attempts = Some(attempts))
    }

    /// Sets the delay before a requeued message should be delivered again. Default: 1 second.
    ///
    /// After a failure the delay doubles with each attempt, up to a minute. If another delivery of the message runs,
    /// the delay is at most the rest of that delivery's lease.
    pub fn retry_after(self, retry_after: Duration) -> Self {
        self.with(|settings| settings.retry_after = retry_after)
    }

    /// Switches the layer off: every message reaches the service, including duplicates. Default: `false`.
    ///
    /// With this setting, a configuration can decide whether a consumer is protected: the type of the service stays the
    /// same. The store is not called, a message needs no key, and there is no [`Operation`]. The outcome of a message
    /// is `Executed`, `Failed` as of a first attempt, or `FailedPermanently` for an error that is
    /// [permanent](Self::permanent_errors).
    ///
    /// ```
    /// use tower::{Layer, ServiceExt, service_fn};
    /// use tower_idempotency::{ConsumerLayer, MemoryStore, consumer::Consumed, fingerprint::Fingerprint};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let switched_on = false; // from the configuration
    /// let store = MemoryStore::new();
    /// let layer = ConsumerLayer::with_fingerprint(store, "payouts", |id: &String| id.clone(), |_| Fingerprint::OFF)
    ///     .disabled(!switched_on);
    /// let payouts = layer.layer(service_fn(|_: String| async { Ok::<_, String>("paid") }));
    /// for _ in 0..2 {
    ///     assert_eq!(payouts.clone().oneshot("order-7".into()).await, Ok(Consumed::Executed("paid")));
    /// }
    /// # }
    /// ```
    pub fn disabled(self, disabled: bool) -> Self {
        self.with(|settings| settings.disabled = disabled)
    }

    pub(super) fn apply(self, policy: RunPolicy) -> Self {
        self.with(|settings| settings.policy.apply(policy))
    }

    pub(super) fn with_permanent(self, permanent: Permanent) -> Self {
        self.with(|settings| settings.permanent = permanent)
    }

    pub(super) fn with_engine(self, change: impl FnOnce(&mut Engine)) -> Self {
        self.with(|settings| change(Arc::make_mut(&mut settings.engine)))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings<M>)) -> Self {
        change(&mut self.settings);
        self
    }
}

impl<S, M> Layer<S> for ConsumerLayer<M> {
    type Service = Consumer<S, M>;

    fn layer(&self, inner: S) -> Consumer<S, M> {
        Consumer::new(inner, Arc::new(self.settings.clone()))
    }
}

impl<M> Clone for ConsumerLayer<M> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone() }
    }
}

impl<M> fmt::Debug for ConsumerLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConsumerLayer").field(&self.settings).finish()
    }
}
