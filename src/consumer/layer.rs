use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;

use super::{Consumer, settings::Settings};
use crate::{
    engine::{Engine, BackgroundTasks, Permanent},
    exchange::Operation,
    value::{AfterCrash, Fingerprint, Keep, Observer, Policy, Secret, WhileRunning, nonzero},
};

/// Handles each message once, however often the broker delivers it.
///
/// A message has a key, which the closure takes out of it: the business's own number, or the message's id if its
/// producer sends it again under the same one. The first delivery runs. A duplicate of a message that was handled is to
/// be acknowledged; one of a message that is being handled is not, since the first one may yet fail. If the service
/// fails, the key is released, and the message is to be given back.
///
/// A key that comes with other content is no duplicate: whoever may publish could take another producer's key, and the
/// other's message would be acknowledged unread. So a message has a [`Fingerprint`] too: its JSON, if it implements
/// `serde::Serialize` (`new`, with the feature `json`), or what a closure makes of it
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
/// The same as for requests, by a lease: a consumer that dies after the effect and before its record leaves a message
/// that runs again, told [`attempt`](Operation::attempt)` > 1`. See [`guide::messages`][messages].
///
/// # Where it runs
///
/// Inside a Tokio runtime with its timer on. The lease is renewed as long as the future is polled, so a message may take
/// as long as it likes; the broker's own patience has to be as long.
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
    /// Whose key it is, such as a tenant's. A message for which the closure gives `None` or a blank text has no valid key.
    ///
    /// By default a key is one and the same for all.
    pub fn scope(self, scope: impl Fn(&M) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.scope = Some(Arc::new(scope)))
    }

    /// What counts as the same message: another content under the same key is a [`Mismatch`], never a duplicate.
    ///
    /// Default: what the layer was made with, the whole message as JSON or a closure's word.
    ///
    /// [`Mismatch`]: super::Consumed::Mismatch
    pub fn fingerprint(self, fingerprint: impl Fn(&M) -> Fingerprint + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.fingerprint = Arc::new(move |message| Ok(fingerprint(message))))
    }

    /// Which errors of the service no other try can change, such as an account that is closed: the message is
    /// [`FailedPermanently`], and its duplicates are too.
    ///
    /// `E` is the service's error type; errors of another type are never permanent. What the service did in the layer's
    /// transaction is rolled back. The service itself can say the same with [`Operation::fail_permanently`].
    ///
    /// ```
    /// use tower_idempotency::{ConsumerLayer, Fingerprint, MemoryStore};
    ///
    /// enum PayoutError {
    ///     AccountClosed,
    ///     BankUnreachable,
    /// }
    ///
    /// let layer = ConsumerLayer::with_fingerprint(
    ///     MemoryStore::new(),
    ///     "payouts",
    ///     |number: &String| number.clone(),
    ///     |_| Fingerprint::OFF,
    /// )
    /// .permanent_errors(|error: &PayoutError| matches!(error, PayoutError::AccountClosed));
    /// # drop((layer, PayoutError::BankUnreachable));
    /// ```
    ///
    /// [`FailedPermanently`]: super::Consumed::FailedPermanently
    pub fn permanent_errors<E: 'static>(self, is_permanent: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.permanent = Permanent::when(is_permanent))
    }

    /// Gives the message its [`Operation`] before the service gets it: attempt, keys for downstream calls, and a word
    /// when the claim is lost.
    ///
    /// ```
    /// use tower_idempotency::{ConsumerLayer, Fingerprint, MemoryStore, Operation};
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

    /// How often a message is tried at most, tries that never came back included. Then it is [`Exhausted`], and its
    /// count begins anew, so that it runs if it is brought back from where it was put aside.
    ///
    /// By default there is no such bound. Brokers may have one of their own.
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

    /// All axes at once, with times. It replaces what was set before, a lease or a retention too: call it first. A call that
    /// replaces what a call before it has set is a warning, unless it is one on a clone.
    ///
    /// Of its axes, `on_duplicate` says nothing here, and `while_running` only whether to wait. With [`Policy::window`] the
    /// [fingerprint](Self::fingerprint) does not count: whatever comes with the same key in that time is acknowledged and not
    /// handled. Of `keep`,
    /// [`Keep::Everything`] keeps errors too; the others, which judge an HTTP answer, keep what was handled, and those errors
    /// that are [permanent](Self::permanent_errors). The limits are for HTTP.
    #[track_caller]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.adjusted.replace();
        self.with(|settings| settings.policy = policy)
    }

    /// Whether a duplicate of a running message is told so at once, or waits; see [`Policy::while_running`].
    #[track_caller]
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Whether errors are kept too, by [`Keep::Everything`]: one that is kept is one for good. For some of them, see
    /// [`permanent_errors`](Self::permanent_errors).
    #[track_caller]
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// What happens once a lease has lapsed; see [`Policy::after_crash`].
    #[track_caller]
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// How long a message that was handled is known; see [`Policy::retention`]. Longer than the broker may deliver it
    /// again, and than anyone may bring it back by hand.
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        let policy = self.settings.policy.clone().retention(retention);
        self.adjust(|_| policy)
    }

    /// How long a running message keeps its key without a sign of life; see [`Policy::lease`].
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        let policy = self.settings.policy.clone().lease(lease);
        self.adjust(|_| policy)
    }

    /// How long a message that is given back should stay away. Default: 1 second.
    ///
    /// After a failure it doubles with each attempt, up to a minute; where another one runs, it is no longer than what is
    /// left of its lease.
    #[track_caller]
    pub fn retry_after(self, retry_after: Duration) -> Self {
        self.adjust(|policy| policy.retry_after(retry_after))
    }

    /// How long the store may take for an answer. Default: 5 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn store_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("store timeout", timeout);
        self.with_engine(|engine| engine.store_timeout = timeout)
    }

    /// Switches the layer off: every message reaches the service, its duplicates too. Default: `false`.
    ///
    /// This is how a configuration decides whether a consumer is protected: the type of the service stays the same. Nothing
    /// is asked of the store, no message is without a key, and there is no [`Operation`]. What came of a message is
    /// `Executed`, `Failed` as of a first attempt, or `FailedPermanently` of an error that is
    /// [permanent](Self::permanent_errors).
    ///
    /// ```
    /// use tower::{Layer, ServiceExt, service_fn};
    /// use tower_idempotency::{ConsumerLayer, Fingerprint, MemoryStore, consumer::Consumed};
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

    /// The work is dropped with its future, and its claim lapses, instead of being finished.
    pub fn cancel_on_disconnect(self) -> Self {
        self.with(|settings| settings.attached = true)
    }

    /// What bounds, counts and awaits the work whose future was dropped. Clones of a layer share one.
    pub fn background_tasks(self, background_tasks: BackgroundTasks) -> Self {
        self.with_engine(|engine| engine.background_tasks = background_tasks)
    }

    /// Keys with a secret what the store, logs and other services see of contents. Default: none.
    ///
    /// See [`Secret`] for what that protects, and for how a secret is replaced.
    pub fn secret(self, secret: Secret) -> Self {
        self.with_engine(|engine| engine.secret = Some(secret))
    }

    /// Is told what the layer does.
    pub fn observer(self, observer: impl Observer) -> Self {
        self.with_engine(|engine| engine.observer = Some(Arc::new(observer)))
    }

    #[track_caller]
    fn adjust(mut self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.settings.adjusted.note();
        self.with(|settings| settings.policy = change(settings.policy.clone()))
    }

    fn with_engine(self, change: impl FnOnce(&mut Engine)) -> Self {
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
