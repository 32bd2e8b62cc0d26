use std::{fmt, sync::Arc, time::Duration};

use super::RunState;
use crate::{
    store::TransactionSlot,
    value::{Claim, KeptAnswer, Origin, Payload, RecordKey, Retain, Secret, Settlement, child_key},
};

/// The operation that a handler runs: what the handler can see of it, and decide about its own answer.
///
/// It is a request extension and, with the feature `axum`, an extractor. A handler that also serves requests that the
/// layer lets through unprotected takes an `Option<Operation>`.
///
/// ```
/// use axum::{Router, http::StatusCode, routing::post};
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation};
///
/// async fn pay(operation: Operation) -> StatusCode {
///     if operation.attempt() > 1 {
///         // An earlier try may have got as far as the bank: ask there before paying again.
///     }
///     StatusCode::CREATED
/// }
///
/// let layer = IdempotencyLayer::new(MemoryStore::new());
/// let app: Router = Router::new().route("/payments", post(pay).layer(layer));
/// # drop(app);
/// ```
#[derive(Clone)]
pub struct Operation {
    state: Arc<RunState>,
    retention: Duration,
    /// The time that it has to be remembered, if nobody may decide otherwise.
    memory: Option<Duration>,
    /// The kept answer, if the operation has ended before.
    ended: Option<Arc<Option<KeptAnswer>>>,
}

impl Operation {
    pub(crate) fn new(state: Arc<RunState>, retention: Duration) -> Self {
        Self { state, retention, memory: None, ended: None }
    }

    /// Creates the operation of a duplicate: the handler sees it, and nothing is claimed.
    pub(crate) fn duplicate(
        key: RecordKey,
        claim: Claim,
        origin: Origin,
        secret: Option<Secret>,
        kept: Option<KeptAnswer>,
    ) -> Self {
        let state = Arc::new(RunState::of_duplicate(key, claim, origin, secret));
        Self { ended: Some(Arc::new(kept)), ..Self::new(state, Duration::ZERO) }
    }

    pub(crate) fn remembered(self, memory: Option<Duration>) -> Self {
        Self { memory, ..self }
    }

    /// Returns the key as it was extracted from the request.
    #[must_use]
    pub fn key(&self) -> &str {
        self.state.key.key()
    }

    /// Returns the scope, if the layer has one.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        self.state.key.scope()
    }

    /// Returns the name of the operation in the store: route, scope and key.
    #[must_use]
    pub fn record_key(&self) -> &RecordKey {
        &self.state.key
    }

    /// Derives a key for one step of this operation, as 64 hexadecimal digits: for a call to another service, as its
    /// `Idempotency-Key`, or for a [`run`][run] of its own.
    ///
    /// Every attempt of the operation derives the same key, and so does a duplicate that [passes
    /// through](crate::OnDuplicate::PassThrough). It depends on the route, the scope, the key, the caller of the first
    /// attempt and the step. It does not depend on the content: if a client corrects its request after a failure, the
    /// other service sees the first key with another content, and can refuse it, but never charges twice. The key does
    /// not reveal what it was derived from if the layer has a [secret](crate::Secret).
    ///
    /// In transaction mode a failed attempt leaves no record, so the next attempt derives from its own caller and the
    /// current secret. A message's failed attempt is recorded all the same, and the next one derives the same keys.
    ///
    /// Deriving a key also marks the operation as [begun](Self::began).
    ///
    #[cfg_attr(feature = "json", doc = "[run]: crate::Once::run")]
    #[cfg_attr(
        not(feature = "json"),
        doc = "[run]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Once.html#method.run"
    )]
    #[must_use]
    pub fn child_key(&self, step: &str) -> String {
        self.began();
        let RunState { key, granted, secret, .. } = &*self.state;
        // A claim is granted only if the secret of its origin is at hand.
        child_key(key, granted.origin, secret.as_ref(), step).unwrap_or_default()
    }

    /// Marks the operation as begun: something outside may know of it from now on.
    ///
    /// By default an answer of 401, 407 or 429 undoes the attempt, as if it had not been made, since such an answer
    /// states that nothing began. After this call it counts as a failed attempt, like any other answer that is not
    /// kept.
    pub fn began(&self) {
        self.state.direct(|directives| directives.began = true);
    }

    /// Returns whether the operation has ended before, and this request is a duplicate that
    /// [passes through](crate::OnDuplicate::PassThrough).
    ///
    /// Nothing is claimed for a duplicate, and several may run at the same time. What the handler decides about its
    /// answer ([`keep`](Self::keep), [`discard`](Self::discard) and their kind) has no effect: the handler must only
    /// read. In transaction mode there is no transaction for a duplicate, so the handler takes an `Operation` and
    /// checks it before it takes the `Tx` out of it; the extractor `Tx` would answer every duplicate with 500.
    ///
    /// ```
    /// use axum::{Router, http::StatusCode, routing::post};
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, OnDuplicate, Operation};
    ///
    /// async fn order(operation: Operation) -> (StatusCode, String) {
    ///     match operation.kept() {
    ///         // The status of today, not of the time when it was ordered.
    ///         Some(_) if operation.is_duplicate() => (StatusCode::OK, "shipped".to_owned()),
    ///         _ => (StatusCode::CREATED, "ordered".to_owned()),
    ///     }
    /// }
    ///
    /// let layer = IdempotencyLayer::new(MemoryStore::new()).on_duplicate(OnDuplicate::PassThrough);
    /// let app: Router = Router::new().route("/orders", post(order).layer(layer));
    /// # drop(app);
    /// ```
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns what was kept of the first answer, if this is a [duplicate](Self::is_duplicate) and an answer was
    /// retained.
    #[must_use]
    pub fn kept(&self) -> Option<&KeptAnswer> {
        self.ended.as_deref()?.as_ref()
    }

    /// Returns how many times the key was claimed since its record began: 1 for the first try, and 0 for a
    /// [duplicate](Self::is_duplicate).
    ///
    /// More than 1 means that a try before this one failed, or never came back, and may have left something behind.
    /// That try may also have come no further than its claim. The count starts again at 1 once the record is gone, so
    /// it orders the tries of one operation, and is not a fencing token for other systems beyond the retention.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.state.granted.attempt
    }

    /// Returns whether the try before this one never came back: its lease lapsed.
    #[must_use]
    pub fn is_takeover(&self) -> bool {
        self.state.granted.takeover
    }

    /// Returns whether the claim may be another's by now: it is known to be lost, or its lease has run out without a
    /// renewal. This happens if the process stood still or did not reach its store.
    ///
    /// Check it right before an effect that cannot be taken back, above all [at most
    /// once](crate::Policy::at_most_once): somebody may have found the record abandoned and released it. A handler that
    /// has not acted yet and [discards](Self::discard) its answer then leaves the operation to the next try:
    ///
    /// ```
    /// use axum::{Router, http::StatusCode, routing::post};
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, Policy};
    /// # async fn look_up_the_account() {}
    /// # async fn charge(_key: &str) -> StatusCode { StatusCode::CREATED }
    ///
    /// async fn pay(operation: Operation) -> StatusCode {
    ///     look_up_the_account().await;
    ///     if operation.is_lost() {
    ///         operation.discard();
    ///         return StatusCode::SERVICE_UNAVAILABLE;
    ///     }
    ///     charge(&operation.child_key("charge")).await
    /// }
    ///
    /// let layer = IdempotencyLayer::new(MemoryStore::new()).policy(Policy::at_most_once());
    /// let app: Router = Router::new().route("/payments", post(pay).layer(layer));
    /// # drop(app);
    /// ```
    ///
    /// It is `false` in the layer's transaction, whose commit fails if the database has ended it. An effect that may be
    /// late even after this check needs a guard where the effect is, such as a unique number.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state.may_be_lost()
    }

    /// Resolves when the claim is lost to another, or when its lease has run out without a renewal, so that it may be.
    ///
    /// It never resolves while the claim is held; use it in a `select!` to stop work that another may be doing too. The
    /// future may be dropped at any time. Right before an effect, check [`is_lost`](Self::is_lost).
    pub async fn lost(&self) {
        self.state.lost().await;
    }

    /// Discards the answer, whatever the policy states: the next try runs.
    pub fn discard(&self) {
        self.state.direct(|directives| directives.retain = Some(Retain::No));
    }

    /// Keeps the answer for the policy's retention, whatever the policy states about its status.
    pub fn keep(&self) {
        self.keep_for(self.retention);
    }

    /// Keeps the answer for this long, whatever the policy states.
    pub fn keep_for(&self, retention: Duration) {
        self.state.direct(|directives| directives.retain = Some(Retain::For(retention)));
    }

    /// Marks a failure as permanent: no other try can change how this one ends, so it is recorded as failed for good
    /// and never runs again.
    ///
    /// It is for errors of a message's service, which become
    /// [`FailedPermanently`](crate::consumer::Consumed::FailedPermanently), and for errors of a function, whose
    /// duplicates are refused with `handler-failed`. What was done in the layer's transaction is rolled back. A message
    /// that is handled all the same is recorded as handled, and an HTTP answer is kept, as by
    /// [`keep_for`](Self::keep_for).
    pub fn fail_permanently(&self) {
        self.keep_for(self.retention);
    }

    /// Returns where the transaction of the layer is, in transaction mode.
    #[cfg_attr(not(feature = "_sql"), allow(dead_code))]
    pub(crate) fn slot(&self) -> Option<&TransactionSlot> {
        self.state.slot.as_ref()
    }

    /// Returns what settles this operation with `payload`, for handlers that settle it in a transaction of their own:
    /// see `SqlStore::settle_in`. Nothing is settled yet.
    ///
    /// The payload is kept for as long as [`keep_for`](Self::keep_for) or the policy states, even if the policy would
    /// not keep it.
    #[must_use]
    pub fn settlement(&self, payload: Payload) -> Settlement {
        let retention = self.memory.unwrap_or_else(|| match self.state.directives().retain {
            Some(Retain::For(retention)) => retention,
            _ => self.retention,
        });
        Settlement::new(self.state.claim.claimant, payload.into_bytes(), retention)
    }

    /// Marks the answer as a stream: it goes to its client as it comes, and a duplicate receives a 409
    /// `response-not-retained`.
    ///
    /// A `text/event-stream` counts as a stream without this call. The call has an effect only before the handler
    /// returns.
    pub fn stream(&self) {
        self.state.direct(|directives| directives.stream = true);
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("key", &self.state.key)
            .field("attempt", &self.state.granted.attempt)
            .field("takeover", &self.state.granted.takeover)
            .finish_non_exhaustive()
    }
}
