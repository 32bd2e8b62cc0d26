use std::{future::Future, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::{RunError, RunFuture, work};
use crate::{
    engine::{Adjusted, BackgroundTasks, Engine, Execution, Operation, Permanent, Task, Work},
    store::{Store, TransactionalStore},
    value::{
        AfterCrash, Claim, Fingerprint, Keep, Observer, OnDuplicate, Policy, RecordKey, Refusal, Secret, WhileRunning,
        is_blank, nonzero,
    },
};

/// A runner of functions that run once for a key. Duplicates receive the value of the first run.
///
/// It is cheap to clone: build one, and let a call adjust a clone.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tower_idempotency::{MemoryStore, Once};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Invoice {
///     number: u32,
/// }
///
/// async fn write(number: u32) -> Result<Invoice, String> {
///     Ok(Invoice { number })
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let invoices = Once::new(MemoryStore::new(), "invoices");
///
/// let first = invoices.run("2026-11/ann", |_| write(1)).await.unwrap();
/// // The job runs again, and writes no second invoice.
/// let again = invoices.run("2026-11/ann", |_| write(2)).await.unwrap();
/// assert_eq!(first, again);
/// # }
/// ```
///
/// # Steps
///
/// A call to another service uses a key that is derived from the function's own key, so that a second attempt repeats
/// the call and not its effect:
///
/// ```
/// # use tower_idempotency::{MemoryStore, Once};
/// # async fn charge(idempotency_key: &str) -> Result<u32, String> { assert_eq!(idempotency_key.len(), 64); Ok(7) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = MemoryStore::new();
/// let (orders, mails) = (Once::new(store.clone(), "orders"), Once::new(store, "mails"));
///
/// let charged = orders
///     .run("7f0c", |order| async move {
///         // To a service that takes a key.
///         let charge = charge(&order.child_key("charge-card")).await?;
///         // For something that takes none.
///         let mail = |_| async { Ok::<_, String>("sent".to_owned()) };
///         mails.run(&order.child_key("mail"), mail).await.map_err(|error| error.to_string())?;
///         Ok::<_, String>(charge)
///     })
///     .await;
/// assert_eq!(charged, Ok(7));
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until something is run"]
pub struct Once {
    engine: Arc<Engine>,
    policy: Policy,
    adjusted: Adjusted,
    name: Arc<str>,
    scope: Option<Arc<str>>,
    fingerprint: Fingerprint,
    permanent: Permanent,
    attached: bool,
}

impl Once {
    /// Creates a runner whose records are in `store`. The policy is [`Policy::replay`].
    ///
    /// `name` identifies what is run: the same key under another name is another operation.
    pub fn new(store: impl Store, name: impl Into<Arc<str>>) -> Self {
        Self::on(Engine::new(store), name)
    }

    /// Creates a runner that runs functions in transactions of the database of `store`: the work of a function in
    /// [`Operation::transaction`](crate::Operation::transaction) and the record of its value are committed together, or
    /// neither is.
    pub fn transactional(store: impl TransactionalStore, name: impl Into<Arc<str>>) -> Self {
        Self::on(Engine::transactional(store), name)
    }

    fn on(engine: Engine, name: impl Into<Arc<str>>) -> Self {
        Self {
            engine: Arc::new(engine),
            policy: Policy::replay(),
            adjusted: Adjusted::default(),
            name: name.into(),
            scope: None,
            fingerprint: Fingerprint::OFF,
            permanent: Permanent::default(),
            attached: false,
        }
    }

    /// Sets whom a key belongs to, such as a tenant. Default: no scope, so a key is one and the same for all.
    pub fn scope(self, scope: impl Into<Arc<str>>) -> Self {
        Self { scope: Some(scope.into()), ..self }
    }

    /// Sets what the function is asked for: another fingerprint under the same key is refused (`key-reused`).
    ///
    /// Default: the key alone decides.
    pub fn fingerprint(self, fingerprint: Fingerprint) -> Self {
        Self { fingerprint, ..self }
    }

    /// Sets the whole policy: all axes, times and limits. This replaces all earlier settings of the policy, such as a
    /// lease or a retention: call it first. If it replaces a setting that an earlier call made, a warning is emitted,
    /// but not on a clone.
    ///
    /// Answers of your own ([`OnDuplicate::Respond`](crate::OnDuplicate), [`WhileRunning::Respond`], and
    /// [`WhileRunning::WaitThenRespond`], which still waits) are for HTTP, and so is
    /// [`OnDuplicate::PassThrough`](crate::OnDuplicate). Here they refuse, with `duplicate-request` or
    /// `request-in-progress`. With [`Policy::window`] the [fingerprint](Self::fingerprint) is not compared. Of
    /// [`Keep`](crate::Keep), `Everything` keeps errors too. The other choices, which judge an HTTP answer, keep
    /// values, and those errors that are [permanent](Self::permanent_errors). The response limit applies to the value's
    /// JSON.
    #[track_caller]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.adjusted.replace();
        Self { policy, ..self }
    }

    /// Sets which errors no other try can change: such an error is recorded, the function never runs again, and
    /// duplicates are refused with `handler-failed`.
    ///
    /// `E` is the function's error type; errors of another type are never permanent. The function's work in the
    /// transaction of a [transactional](Self::transactional) run is rolled back. The function itself can report the
    /// same with [`Operation::fail_permanently`].
    pub fn permanent_errors<E: 'static>(self, is_permanent: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        Self { permanent: Permanent::when(is_permanent), ..self }
    }

    /// Sets how a duplicate of an ended run is answered: with the first one's value, or with `duplicate-request`; see
    /// [`policy`](Self::policy). A kept failure is `handler-failed` in any case.
    #[track_caller]
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.adjust(|policy| policy.on_duplicate(on_duplicate))
    }

    /// Sets whether a duplicate of a running function is refused at once or waits; see [`Policy::while_running`].
    #[track_caller]
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Sets whether errors are kept too; see [`policy`](Self::policy).
    #[track_caller]
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// Sets what happens once a lease has lapsed; see [`Policy::after_crash`].
    #[track_caller]
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// Sets how long a value's JSON may be, in bytes, for the value to be kept; see [`Policy::response_limit`].
    #[track_caller]
    pub fn response_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.response_limit(bytes))
    }

    /// Sets how long a value answers duplicates; see [`Policy::retention`].
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        let policy = self.policy.clone().retention(retention);
        self.adjust(|_| policy)
    }

    /// Sets how long a running function keeps its key without a renewal; see [`Policy::lease`].
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        let policy = self.policy.clone().lease(lease);
        self.adjust(|_| policy)
    }

    /// Sets how long the store may take to answer. Default: 5 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn store_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("store timeout", timeout);
        self.with_engine(|engine| engine.store_timeout = timeout)
    }

    /// Drops the work with its future, instead of finishing it. Its claim then lapses.
    pub fn cancel_on_disconnect(self) -> Self {
        Self { attached: true, ..self }
    }

    /// Sets the [`BackgroundTasks`] that limit, count and await work whose future was dropped. Clones share them.
    pub fn background_tasks(self, background_tasks: BackgroundTasks) -> Self {
        self.with_engine(|engine| engine.background_tasks = background_tasks)
    }

    /// Sets the secret that keys the digests of contents in the store, in logs and at other services. Default: none.
    ///
    /// See [`Secret`] for what it protects, and for how to replace it.
    pub fn secret(self, secret: Secret) -> Self {
        self.with_engine(|engine| engine.secret = Some(secret))
    }

    /// Sets the observer that receives the [events](crate::Event) of the runs.
    pub fn observer(self, observer: impl Observer) -> Self {
        self.with_engine(|engine| engine.observer = Some(Arc::new(observer)))
    }

    /// Runs `function`, unless a function has run under this key before: then the value comes from the store.
    ///
    /// An error releases the key, so that the next try runs, unless the error is kept, as by
    /// [`permanent_errors`](Self::permanent_errors). After a kept error the function never runs again, and duplicates
    /// receive `handler-failed`, without the error. A failure that is an answer, such as a declined card, is better
    /// returned as a value: `Ok(Err(declined))` is kept and replayed.
    ///
    /// A value that cannot be written as JSON without a loss (a number that is not finite), or that is longer than
    /// [`Policy::response_limit`], is returned to this caller, and duplicates receive `response-not-retained`. A
    /// duplicate also receives `response-not-retained` if its type cannot be read from the kept value.
    ///
    /// # Errors
    ///
    /// Returns an error if `function` fails, or if it was not run. It is not run if the key is invalid (1 to 255 bytes,
    /// no control characters, not blank), belongs to another fingerprint or is running, if the value was not kept, if
    /// the outcome is unknown, or if the store does not answer. A run that was overtaken is answered from the record.
    ///
    /// # Panics
    ///
    /// Panics if `function` panics, once its claim has been ended, or if it is called outside a Tokio runtime whose
    /// timer is enabled.
    pub fn run<T, E, F>(&self, key: &str, function: impl FnOnce(Operation) -> F + Send + 'static) -> RunFuture<T, E>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Send + 'static,
        F: Future<Output = Result<T, E>> + Send,
    {
        let key = match self.scope.as_deref() {
            Some(scope) if is_blank(scope) => Err(Refusal::ScopeMissing),
            scope => RecordKey::new(&self.name, scope, key).map_err(Refusal::KeyInvalid),
        };
        let mut claim = Claim::new(self.policy.lease, self.policy.horizon());
        claim.at_most_once = self.policy.is_at_most_once();
        claim.fingerprint = if self.policy.any_content { Fingerprint::OFF } else { self.fingerprint };
        if let Some(secret) = &self.engine.secret {
            claim = claim.sealed_with(secret);
        }
        let (engine, policy) = (self.engine.clone(), self.policy.clone());
        let (attached, permanent) = (self.attached, self.permanent.clone());
        let work = Arc::new(Work::new());
        let working = work.clone();
        let running = async move {
            match key {
                Ok(key) => {
                    let execution = Execution { key: &key, claim: &claim, policy: &policy, attached, counts: None };
                    work::run(&engine, &working, execution, &permanent, function).await
                }
                Err(refusal) => Err(RunError::Refused(refusal)),
            }
        };
        RunFuture::new(Task::new(self.engine.clone(), work, running))
    }

    #[track_caller]
    fn adjust(mut self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.adjusted.note();
        let policy = change(self.policy.clone());
        Self { policy, ..self }
    }

    fn with_engine(mut self, change: impl FnOnce(&mut Engine)) -> Self {
        change(Arc::make_mut(&mut self.engine));
        self
    }
}
