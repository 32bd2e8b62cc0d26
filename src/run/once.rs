use std::{future::Future, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use super::{RunError, RunFuture, work::Rules};
use crate::{
    engine::{Begun, ClaimRequest, Engine, FnSettings, Operation, Outcome, Permanent, Task},
    store::{Store, TransactionalStore},
    value::{Claim, Fingerprint, RecordKey, Refusal, Resolved, RunPolicy, is_blank},
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
    policy: Resolved<RunPolicy>,
    name: Arc<str>,
    scope: Option<Arc<str>>,
    fingerprint: Fingerprint,
    permanent: Permanent,
    reject_duplicates: Option<bool>,
    value_limit: usize,
}

impl Once {
    /// Creates a runner whose records are in `store`.
    ///
    /// `name` identifies what is run: the same key under another name is another operation.
    pub fn new(store: impl Store, name: impl Into<Arc<str>>) -> Self {
        Self::on(Engine::new(store), name)
    }

    /// Creates a runner that runs functions in transactions of the database of `store`: the work of a function in
    /// `Operation::transaction` and the record of its value are committed together, or
    /// neither is.
    pub fn transactional(store: impl TransactionalStore, name: impl Into<Arc<str>>) -> Self {
        Self::on(Engine::transactional(store), name)
    }

    fn on(engine: Engine, name: impl Into<Arc<str>>) -> Self {
        Self {
            engine: Arc::new(engine),
            policy: RunPolicy::new().into(),
            name: name.into(),
            scope: None,
            fingerprint: Fingerprint::OFF,
            permanent: Permanent::default(),
            reject_duplicates: None,
            value_limit: 2 * 1024 * 1024,
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

    /// Sets whether a duplicate of an ended run is refused (`duplicate-request`), instead of receiving the first one's
    /// value. Default: `false`; in a [window](RunPolicy::window) `true`.
    ///
    /// A duplicate of a kept failure is refused with `handler-failed` in any case.
    pub fn reject_duplicates(self, reject: bool) -> Self {
        Self { reject_duplicates: Some(reject), ..self }
    }

    /// Sets how long a value's JSON may be, in bytes, for the value to be kept. Default: 2 MiB.
    ///
    /// A longer value is returned to its caller, and duplicates are refused with `response-not-retained`.
    pub fn value_limit(self, bytes: usize) -> Self {
        Self { value_limit: bytes, ..self }
    }

    /// Runs `function`, unless a function has run under this key before: then the value comes from the store.
    ///
    /// An error releases the key, so that the next try runs, unless the error is kept, as by
    /// [`permanent_errors`](Self::permanent_errors). After a kept error the function never runs again, and duplicates
    /// receive `handler-failed`, without the error. A failure that is an answer, such as a declined card, is better
    /// returned as a value: `Ok(Err(declined))` is kept and replayed.
    ///
    /// A value that cannot be written as JSON without a loss (a number that is not finite), or that is longer than
    /// [`value_limit`](Self::value_limit), is returned to this caller, and duplicates receive `response-not-retained`. A
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
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let key = match self.scope.as_deref() {
            Some(scope) if is_blank(scope) => Err(Refusal::ScopeMissing),
            scope => RecordKey::new(&self.name, scope, key).map_err(Refusal::key_invalid),
        };
        let mut claim = Claim::new(self.policy.lease, self.policy.horizon());
        claim.at_most_once = self.policy.is_at_most_once();
        claim.fingerprint = if self.policy.any_content { Fingerprint::OFF } else { self.fingerprint };
        if let Some(secret) = &self.engine.secret {
            claim = claim.sealed_with(secret);
        }
        let (engine, policy) = (self.engine.clone(), *self.policy);
        let rules = Arc::new(Rules {
            policy,
            permanent: self.permanent.clone(),
            // In a window the content is not compared, so the value may be that of something else.
            reject_duplicates: self.reject_duplicates.unwrap_or(policy.any_content),
            value_limit: self.value_limit,
        });
        let key = match key {
            Ok(key) => key,
            Err(refusal) => {
                return RunFuture::new(Task::begin(async { Begun::Ended(Err(RunError::Refused(refusal))) }));
            }
        };
        // The address of its engine identifies a runner.
        let request = ClaimRequest::new(key, claim, policy.wait, Arc::as_ptr(&engine).addr());
        let settings = FnSettings { policy, counts: None };
        let (running, reporting) = (rules.clone(), engine.clone());
        let work = move |state| running.run(state, function);
        let map = move |key: &RecordKey, outcome: Outcome<_>| rules.value(&reporting, key, outcome);
        RunFuture::new(Task::execute(engine, request, settings, work, map))
    }

    pub(super) fn apply(mut self, policy: RunPolicy) -> Self {
        self.policy.apply(policy);
        self
    }

    pub(super) fn with_permanent(self, permanent: Permanent) -> Self {
        Self { permanent, ..self }
    }

    pub(super) fn with_engine(mut self, change: impl FnOnce(&mut Engine)) -> Self {
        change(Arc::make_mut(&mut self.engine));
        self
    }
}
