use std::{future::Future, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::{RunError, RunFuture, work};
use crate::{
    engine::{Adjusted, Engine, Execution, BackgroundTasks, Permanent, Task, Work},
    exchange::Operation,
    store::{Store, TransactionalStore},
    value::{
        AfterCrash, Claim, Fingerprint, Keep, Observer, OnDuplicate, Policy, RecordKey, Refusal, Secret, WhileRunning,
        is_blank, nonzero,
    },
};

/// Runs functions once for a key, and gives duplicates the value of the first.
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
/// What a function does elsewhere, it does under a key that is derived from its own, so that a second attempt repeats
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
    /// Runs functions whose records are in `store`. The policy is [`Policy::replay`].
    ///
    /// `name` says what is run: the same key under another name is another operation.
    pub fn new(store: impl Store, name: impl Into<Arc<str>>) -> Self {
        Self::on(Engine::new(store), name)
    }

    /// Runs functions in transactions of the database of `store`: what they do in
    /// [`Operation::transaction`](crate::Operation::transaction) and the record of their value are committed together,
    /// or neither is.
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

    /// Whose key it is, such as a tenant's. By default a key is one and the same for all.
    pub fn scope(self, scope: impl Into<Arc<str>>) -> Self {
        Self { scope: Some(scope.into()), ..self }
    }

    /// What the function is asked for: another one under the same key is refused (`key-reused`).
    ///
    /// By default the key alone decides.
    pub fn fingerprint(self, fingerprint: Fingerprint) -> Self {
        Self { fingerprint, ..self }
    }

    /// All axes at once, with times and limits. It replaces what was set before, a lease or a retention too: call it first. A
    /// call that replaces what a call before it has set is a warning, unless it is one on a clone.
    ///
    /// An answer of one's own ([`OnDuplicate::Respond`](crate::OnDuplicate), [`WhileRunning::Respond`] and
    /// [`WhileRunning::WaitThenRespond`], which still waits) is for HTTP, and so is
    /// [`OnDuplicate::PassThrough`](crate::OnDuplicate): here they refuse, with `duplicate-request` or
    /// `request-in-progress`. With [`Policy::window`] the [fingerprint](Self::fingerprint) does not count. Of [`Keep`](crate::Keep), `Everything` keeps errors too; the others, which judge an
    /// HTTP answer, keep values, and those errors that are [permanent](Self::permanent_errors). The response limit is for the
    /// value's JSON.
    #[track_caller]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.adjusted.replace();
        Self { policy, ..self }
    }

    /// Which errors no other try can change: one of them is recorded, the function never runs again, and duplicates are
    /// refused with `handler-failed`.
    ///
    /// `E` is the function's error type; errors of another type are never permanent. What the function did in the
    /// transaction of a [transactional](Self::transactional) run is rolled back. The function itself can say the same with
    /// [`Operation::fail_permanently`].
    pub fn permanent_errors<E: 'static>(self, is_permanent: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        Self { permanent: Permanent::when(is_permanent), ..self }
    }

    /// What a duplicate of an ended run gets: the first one's value, or `duplicate-request`; see
    /// [`policy`](Self::policy). A failure that was kept is `handler-failed` in any case.
    #[track_caller]
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.adjust(|policy| policy.on_duplicate(on_duplicate))
    }

    /// Whether a duplicate of a running function is refused at once, or waits; see [`Policy::while_running`].
    #[track_caller]
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Whether errors are kept too; see [`policy`](Self::policy).
    #[track_caller]
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// What happens once a lease has lapsed; see [`Policy::after_crash`].
    #[track_caller]
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// How long a value's JSON may be to be kept; see [`Policy::response_limit`].
    #[track_caller]
    pub fn response_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.response_limit(bytes))
    }

    /// How long a value answers duplicates; see [`Policy::retention`].
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        let policy = self.policy.clone().retention(retention);
        self.adjust(|_| policy)
    }

    /// How long a running function keeps its key without a sign of life; see [`Policy::lease`].
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        let policy = self.policy.clone().lease(lease);
        self.adjust(|_| policy)
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

    /// The work is dropped with its future, and its claim lapses, instead of being finished.
    pub fn cancel_on_disconnect(self) -> Self {
        Self { attached: true, ..self }
    }

    /// What bounds, counts and awaits the work whose future was dropped. Clones share one.
    pub fn background_tasks(self, background_tasks: BackgroundTasks) -> Self {
        self.with_engine(|engine| engine.background_tasks = background_tasks)
    }

    /// Keys with a secret what the store, logs and other services see of contents. Default: none.
    ///
    /// See [`Secret`] for what that protects, and for how a secret is replaced.
    pub fn secret(self, secret: Secret) -> Self {
        self.with_engine(|engine| engine.secret = Some(secret))
    }

    /// Is told what happens.
    pub fn observer(self, observer: impl Observer) -> Self {
        self.with_engine(|engine| engine.observer = Some(Arc::new(observer)))
    }

    /// Runs `function`, unless it ran under this key before: then its value comes from the store.
    ///
    /// An error releases the key, so that the next try runs, unless it is kept, as by
    /// [`permanent_errors`](Self::permanent_errors): then it never runs again, and
    /// duplicates hear `handler-failed`, without the error. A failure that is an answer, such as a card that was
    /// declined, is better given as a value: `Ok(Err(declined))` is kept and replayed.
    ///
    /// A value that cannot be written as JSON without a loss (a number that is not finite), or is longer than
    /// [`Policy::response_limit`], is given to this caller, and
    /// duplicates hear `response-not-retained`; so do those whose type cannot be read from what was kept.
    ///
    /// # Errors
    ///
    /// What `function` gave, or why it was not run: the key is invalid (1 to 255 bytes, no control characters, not blank), belongs
    /// to another fingerprint, or is running; the value was not kept; the outcome is unknown; the store does not answer.
    /// A run that was overtaken gets what the record says.
    ///
    /// # Panics
    ///
    /// Panics if `function` panics, once its claim has been ended, and outside a Tokio runtime with its timer on.
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
                    let errand = Execution { key: &key, claim: &claim, policy: &policy, attached, counts: None };
                    work::run(&engine, &working, errand, &permanent, function).await
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
