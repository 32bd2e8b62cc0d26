use std::{sync::Arc, time::Duration};

#[cfg(feature = "json")]
use super::settings::in_json;
use super::{
    IntoKey,
    layer::ConsumerLayer,
    settings::{MessageFn, Settings},
};
use crate::{
    engine::{Engine, Permanent},
    store::{Store, TransactionalStore},
    value::{Fingerprint, Refusal, RunPolicy},
};

/// Constructors.
impl<M> ConsumerLayer<M> {
    /// Creates a layer that keeps its records in `store`. The closure `key` takes the key out of a message, and the
    /// fingerprint of a message is its JSON.
    ///
    /// `name` identifies the consumer: two consumers of one message, each with its own work, need two names. The name
    /// should not change from one deploy to the next.
    ///
    /// Fields that differ from one delivery of a message to the next, such as a delivery tag or the
    /// [`Operation`](crate::Operation), must not be serialised (`#[serde(skip)]`). Collections without an order of
    /// their own, such as a `HashSet`, should not be serialised either. The order of a map's members makes no
    /// difference. If this is not possible, use [`with_fingerprint`](Self::with_fingerprint).
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    pub fn new<K: IntoKey>(
        store: impl Store,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
    ) -> Self
    where
        M: serde::Serialize,
    {
        Self::on(Engine::new(store), name, key, Arc::new(|message| in_json(message)))
    }

    /// Creates a layer as `new` does, for messages whose fingerprint a closure returns.
    ///
    /// With [`Fingerprint::OFF`] the key alone decides: then everybody who can publish must be trusted with everybody's
    /// keys.
    ///
    /// ```
    /// use tower_idempotency::{ConsumerLayer, MemoryStore, fingerprint::Fingerprint};
    ///
    /// struct Delivery {
    ///     message_id: String,
    ///     body: Vec<u8>,
    /// }
    ///
    /// let layer = ConsumerLayer::with_fingerprint(
    ///     MemoryStore::new(),
    ///     "payouts",
    ///     |delivery: &Delivery| delivery.message_id.clone(),
    ///     |delivery| Fingerprint::builder().part(&delivery.body).build(),
    /// );
    /// # drop(layer);
    /// ```
    pub fn with_fingerprint<K: IntoKey>(
        store: impl Store,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
        fingerprint: impl Fn(&M) -> Fingerprint + Send + Sync + 'static,
    ) -> Self {
        Self::on(Engine::new(store), name, key, Arc::new(move |message| Ok(fingerprint(message))))
    }

    /// Creates a layer that opens a transaction in the database of `store`. The service works in the same transaction:
    /// its effect and the record of its message are committed together, or neither is. The rest is as with `new`.
    ///
    /// The service takes the transaction from its [`Operation`][transaction], which [`operation`](Self::operation) puts
    /// into the message. A failure rolls the transaction back. The attempt is counted afterwards, by one statement
    /// outside the transaction, so that [`attempts`](Self::attempts) can limit them. A try that a crash has interrupted
    /// is not counted, unlike without transactions, so set a limit at the broker too.
    ///
    /// ```
    /// # #[cfg(all(feature = "json", feature = "sqlite"))] {
    /// use serde::Serialize;
    /// use sqlx::Sqlite;
    /// use tower::{Layer, service_fn};
    /// use tower_idempotency::{ConsumerLayer, Operation, SqliteStore};
    ///
    /// #[derive(Serialize)]
    /// struct Order {
    ///     id: String,
    ///     #[serde(skip)]
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
    ///
    #[cfg_attr(feature = "_sql", doc = "[transaction]: crate::Operation::transaction")]
    #[cfg_attr(
        not(feature = "_sql"),
        doc = "[transaction]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Operation.html#method.transaction"
    )]
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    pub fn transactional<K: IntoKey>(
        store: impl TransactionalStore,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
    ) -> Self
    where
        M: serde::Serialize,
    {
        Self::on(Engine::transactional(store), name, key, Arc::new(|message| in_json(message)))
    }

    /// Creates a layer as `transactional` does, for messages whose fingerprint a closure returns, as with
    /// [`with_fingerprint`](Self::with_fingerprint).
    pub fn transactional_with_fingerprint<K: IntoKey>(
        store: impl TransactionalStore,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
        fingerprint: impl Fn(&M) -> Fingerprint + Send + Sync + 'static,
    ) -> Self {
        Self::on(Engine::transactional(store), name, key, Arc::new(move |message| Ok(fingerprint(message))))
    }

    fn on<K: IntoKey>(
        engine: Engine,
        name: impl Into<Arc<str>>,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
        fingerprint: MessageFn<M, Result<Fingerprint, Refusal>>,
    ) -> Self {
        Self {
            settings: Settings {
                engine: Arc::new(engine),
                policy: RunPolicy::new().into(),
                retry_after: Duration::from_secs(1),
                attempts: None,
                disabled: false,
                name: name.into(),
                key: Arc::new(move |message| key(message).into_key()),
                scope: None,
                fingerprint,
                permanent: Permanent::default(),
                operation: None,
            },
        }
    }
}
