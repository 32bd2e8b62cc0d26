use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use tower_layer::Layer;

use super::{Consumer, IntoKey};
use crate::{
    engine::{Engine, Leftovers},
    exchange::Operation,
    store::{Store, TransactionalStore},
    value::{
        AfterCrash, Claim, Fingerprint, Keep, KeyError, Observer, Policy, RecordKey, Refusal, Secret, WhileRunning,
    },
};

/// Handles each message once, however often the broker delivers it.
///
/// A message has a key, which the closure takes out of it: the business's own number, or the message's id where its
/// producer sends it again under the same one. The first delivery runs. A duplicate of a message that was handled is to
/// be acknowledged; one of a message that is being handled is not, since the first one may yet fail. If the service
/// fails, the key is released, and the message is to be given back.
///
/// ```
/// use tower::{Layer, Service, ServiceExt, service_fn};
/// use tower_idempotency::{ConsumerLayer, MemoryStore, consumer::{Action, Consumed}};
///
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
/// ```
///
/// # What is promised
///
/// The same as for requests, by a lease: a consumer that dies after the effect and before its record leaves a message
/// that runs again, told [`attempt`](Operation::attempt)` > 1`. See [`guide::messages`](crate::guide::messages).
///
/// # Where it runs
///
/// Inside a Tokio runtime with its timer on. The lease is renewed as long as the future is polled, so a message may take
/// as long as it likes; the broker's own patience has to be as long.
#[must_use = "a layer does nothing until it is put around a service"]
pub struct ConsumerLayer<M> {
    settings: Settings<M>,
}

type Given<M> = Arc<dyn Fn(&mut M, Operation) + Send + Sync>;
type Taken<M, T> = Arc<dyn Fn(&M) -> T + Send + Sync>;

pub(super) struct Settings<M> {
    pub(super) engine: Arc<Engine>,
    pub(super) policy: Policy,
    pub(super) attempts: Option<u32>,
    pub(super) attached: bool,
    name: Arc<str>,
    key: Taken<M, Result<Option<String>, KeyError>>,
    scope: Option<Taken<M, Option<String>>>,
    fingerprint: Option<Taken<M, Fingerprint>>,
    pub(super) operation: Option<Given<M>>,
}

impl<M> ConsumerLayer<M> {
    /// A layer that keeps its records in `store`, for messages whose key is what `key` takes out of them.
    ///
    /// `name` says who consumes: two consumers of one message, each with its own work to do, need two names, and it
    /// should not change from one deploy to the next. The policy is [`Policy::replay`].
    pub fn new<K: IntoKey>(
        store: impl Store,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
    ) -> Self {
        Self::on(Engine::new(store), name, key)
    }

    /// A layer that opens a transaction in the database of `store`, in which the service works too: its effect and the
    /// record of its message are committed together, or neither is.
    ///
    /// The service takes the transaction from its [`Operation`](Operation::transaction), which
    /// [`operation`](Self::operation) puts into the message. A failure rolls back the count of attempts too, so
    /// [`attempts`](Self::attempts) has no effect: let the broker count.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] {
    /// use sqlx::Sqlite;
    /// use tower::{Layer, service_fn};
    /// use tower_idempotency::{ConsumerLayer, Operation, SqliteStore};
    ///
    /// struct Order {
    ///     id: String,
    ///     operation: Option<Operation>,
    /// }
    ///
    /// async fn pay_out(order: Order) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     let operation = order.operation.ok_or("no operation")?;
    ///     let mut tx = operation.transaction::<Sqlite>()?;
    ///     sqlx::query("INSERT INTO payouts (id) VALUES (?)").bind(order.id).execute(&mut *tx).await?;
    ///     Ok(())
    /// }
    ///
    /// fn consumer(store: SqliteStore) {
    ///     let layer = ConsumerLayer::transactional(store, "payouts", |order: &Order| order.id.clone())
    ///         .operation(|order, operation| order.operation = Some(operation));
    ///     let payouts = layer.layer(service_fn(pay_out));
    /// #   drop(payouts);
    /// }
    /// # }
    /// ```
    pub fn transactional<K: IntoKey>(
        store: impl TransactionalStore,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
    ) -> Self {
        Self::on(Engine::transactional(store), name, key)
    }

    fn on<K: IntoKey>(
        engine: Engine,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
    ) -> Self {
        Self {
            settings: Settings {
                engine: Arc::new(engine),
                policy: Policy::replay(),
                attempts: None,
                attached: false,
                name: name.into(),
                key: Arc::new(move |message| key(message).into_key()),
                scope: None,
                fingerprint: None,
                operation: None,
            },
        }
    }

    /// Whose key it is, such as a tenant's. A message for which the closure gives `None` has no valid key.
    ///
    /// By default a key is one and the same for all.
    pub fn scope(self, scope: impl Fn(&M) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.scope = Some(Arc::new(scope)))
    }

    /// What counts as the same message: another content under the same key is a [`Mismatch`], never a duplicate.
    ///
    /// By default the key alone decides.
    ///
    /// [`Mismatch`]: super::Consumed::Mismatch
    pub fn fingerprint(self, fingerprint: impl Fn(&M) -> Fingerprint + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.fingerprint = Some(Arc::new(fingerprint)))
    }

    /// Gives the message its [`Operation`] before the service gets it: attempt, keys for downstream calls, and a word
    /// when the claim is lost.
    ///
    /// ```
    /// use tower_idempotency::{ConsumerLayer, MemoryStore, Operation};
    ///
    /// struct Order {
    ///     id: String,
    ///     operation: Option<Operation>,
    /// }
    ///
    /// let layer = ConsumerLayer::new(MemoryStore::new(), "payouts", |order: &Order| order.id.clone())
    ///     .operation(|order, operation| order.operation = Some(operation));
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
    /// Where `attempts` is 0.
    ///
    /// [`Exhausted`]: super::Consumed::Exhausted
    #[track_caller]
    pub fn attempts(self, attempts: u32) -> Self {
        assert!(attempts > 0, "a message that is never tried");
        self.with(|settings| settings.attempts = Some(attempts))
    }

    /// All axes at once, with times. It replaces what was set before.
    ///
    /// Of its axes, `on_duplicate` says nothing here, and `while_running` only whether to wait. A closure of
    /// [`Keep::When`] sees 200 for what the service did and 500 for its errors, without a body. The limits are for HTTP.
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|settings| settings.policy = policy)
    }

    /// Whether a duplicate of a running message is told so at once, or waits; see [`Policy::while_running`].
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Which outcomes are kept; see [`Policy::keep`]. An error that is kept is one for good.
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// What happens once a lease has lapsed; see [`Policy::after_crash`].
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// How long a message that was handled is known; see [`Policy::retention`]. Longer than the broker may deliver it
    /// again, and than anyone may bring it back by hand.
    pub fn retention(self, retention: Duration) -> Self {
        self.adjust(|policy| policy.retention(retention))
    }

    /// How long a running message keeps its key without a sign of life; see [`Policy::lease`].
    ///
    /// # Panics
    ///
    /// Where `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        let policy = self.settings.policy.clone().lease(lease);
        self.policy(policy)
    }

    /// How long a message that is given back should stay away. Default: 1 second.
    ///
    /// After a failure it doubles with each attempt, up to a minute; where another one runs, it is no longer than what is
    /// left of its lease.
    pub fn retry_after(self, retry_after: Duration) -> Self {
        self.adjust(|policy| policy.retry_after(retry_after))
    }

    /// How long the store may take for an answer. Default: 5 seconds.
    pub fn store_timeout(self, timeout: Duration) -> Self {
        self.with_engine(|engine| engine.store_timeout = timeout)
    }

    /// The work is dropped with its future, and its claim lapses, instead of being finished.
    pub fn attached(self) -> Self {
        self.with(|settings| settings.attached = true)
    }

    /// What bounds, counts and awaits the work whose future was dropped. Clones of a layer share one.
    pub fn leftovers(self, leftovers: Leftovers) -> Self {
        self.with_engine(|engine| engine.leftovers = leftovers)
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

    fn adjust(self, change: impl FnOnce(Policy) -> Policy) -> Self {
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

impl<M> Settings<M> {
    /// Which operation a message is, and the claim for it.
    pub(super) fn claim(&self, message: &M) -> Result<(RecordKey, Claim), Refusal> {
        let key = (self.key)(message).map_err(Refusal::KeyInvalid)?.ok_or(Refusal::KeyMissing)?;
        let scope = match &self.scope {
            Some(scope) => Some(scope(message).ok_or(Refusal::ScopeMissing)?),
            None => None,
        };
        let key = RecordKey::new(&self.name, scope.as_deref(), &key).map_err(Refusal::KeyInvalid)?;
        let mut claim = Claim::new(self.policy.lease, self.policy.horizon());
        claim.at_most_once = self.policy.is_at_most_once();
        if let Some(fingerprint) = &self.fingerprint {
            claim.fingerprint = fingerprint(message);
        }
        if let Some(secret) = &self.engine.secret {
            claim = claim.sealed_with(secret);
        }
        Ok((key, claim))
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

// By hand: a message need not be one that can be cloned.
impl<M> Clone for Settings<M> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            policy: self.policy.clone(),
            attempts: self.attempts,
            attached: self.attached,
            name: self.name.clone(),
            key: self.key.clone(),
            scope: self.scope.clone(),
            fingerprint: self.fingerprint.clone(),
            operation: self.operation.clone(),
        }
    }
}

impl<M> fmt::Debug for ConsumerLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConsumerLayer").field(&self.settings).finish()
    }
}

impl<M> fmt::Debug for Settings<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("engine", &self.engine)
            .field("policy", &self.policy)
            .field("name", &self.name)
            .field("attempts", &self.attempts)
            .field("attached", &self.attached)
            .field("message", &PhantomData::<M>)
            .finish_non_exhaustive()
    }
}
