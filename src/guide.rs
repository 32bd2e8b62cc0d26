//! Guides. Their examples run as tests.

/// The terms that the crate uses.
#[doc = include_str!("../docs/glossary.md")]
pub mod glossary {}

/// Choosing: from the business case to the call.
#[doc = include_str!("../docs/choosing.md")]
pub mod choosing {}

/// Windows: once in a while instead of once.
#[doc = include_str!("../docs/windows.md")]
pub mod windows {}

/// What is promised, in each mode and event by event.
#[doc = include_str!("../docs/promises.md")]
pub mod promises {}

/// By what the promises are shown.
#[doc = include_str!("../docs/proof.md")]
pub mod proof {}

/// The order of layers.
#[doc = include_str!("../docs/layers.md")]
pub mod layers {}

/// The owner of a key: users and tenants.
#[doc = include_str!("../docs/callers.md")]
pub mod callers {}

/// Many tenants in one service.
#[doc = include_str!("../docs/tenants.md")]
pub mod tenants {}

/// Calling other services.
#[doc = include_str!("../docs/calling_others.md")]
pub mod calling_others {}

/// Security, with the threat model.
#[doc = include_str!("../docs/security.md")]
pub mod security {}

/// Operating it: from an alert to its cause to its cure.
#[doc = include_str!("../docs/operating.md")]
pub mod operating {}

/// Deploying, and what to watch.
#[doc = include_str!("../docs/deploying.md")]
pub mod deploying {}

/// Migrating from a table, from SETNX and from other crates.
#[doc = include_str!("../docs/migrating.md")]
pub mod migrating {}

/// Shutting down.
#[doc = include_str!("../docs/shutdown.md")]
pub mod shutdown {}

/// Payment callbacks and webhooks.
#[cfg(feature = "presets")]
#[cfg_attr(docsrs, doc(cfg(feature = "presets")))]
#[doc = include_str!("../docs/callbacks.md")]
#[doc = ""]
#[cfg_attr(feature = "_sql", doc = "[message_log]: crate::guide::message_log")]
#[cfg_attr(
    not(feature = "_sql"),
    doc = "[message_log]: https://docs.rs/tower-idempotency/latest/tower_idempotency/guide/message_log/index.html"
)]
#[doc = ""]
#[cfg_attr(feature = "sqlite", doc = "[payments]: crate::guide::payments")]
#[cfg_attr(
    not(feature = "sqlite"),
    doc = "[payments]: https://docs.rs/tower-idempotency/latest/tower_idempotency/guide/payments/index.html"
)]
pub mod callbacks {}

/// Payments: what the handler of a callback decides.
#[cfg(all(feature = "presets", feature = "sqlite"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "presets", feature = "sqlite"))))]
#[doc = include_str!("../docs/payments.md")]
pub mod payments {}

/// For clients.
#[doc = include_str!("../docs/clients.md")]
pub mod clients {}

/// Refusals in the format of your own API.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
#[doc = include_str!("../docs/errors.md")]
pub mod errors {}

/// Mistakes, and how each is reported.
#[doc = include_str!("../docs/mistakes.md")]
pub mod mistakes {}

/// Testing.
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

/// Writing a store.
#[cfg(all(feature = "memory", feature = "testing"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "memory", feature = "testing"))))]
#[doc = include_str!("../docs/stores.md")]
pub mod stores {}

/// Refusals.
#[doc = include_str!("../docs/refusals.md")]
pub mod refusals {}

/// Forms that are submitted once.
#[doc = include_str!("../docs/tokens.md")]
#[doc = ""]
#[cfg_attr(feature = "form", doc = "[multipart_prefix]: crate::TokenLayer::multipart_prefix")]
#[cfg_attr(
    not(feature = "form"),
    doc = "[multipart_prefix]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.TokenLayer.html#method.multipart_prefix"
)]
#[cfg_attr(feature = "signed-tokens", doc = "[signed]: crate::Tokens::signed")]
#[cfg_attr(
    not(feature = "signed-tokens"),
    doc = "[signed]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Tokens.html#method.signed"
)]
#[cfg_attr(feature = "signed-tokens", doc = "[clock_skew]: crate::Tokens::clock_skew")]
#[cfg_attr(
    not(feature = "signed-tokens"),
    doc = "[clock_skew]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Tokens.html#method.clock_skew"
)]
#[cfg_attr(feature = "signed-tokens", doc = "[SigningKeys]: crate::token::SigningKeys")]
#[cfg_attr(
    not(feature = "signed-tokens"),
    doc = "[SigningKeys]: https://docs.rs/tower-idempotency/latest/tower_idempotency/token/struct.SigningKeys.html"
)]
pub mod tokens {}

/// Transactions.
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
#[doc = include_str!("../docs/transactions.md")]
pub mod transactions {}

/// Redis.
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
#[doc = include_str!("../docs/redis.md")]
pub mod redis {}

/// PostgreSQL, MariaDB (MySQL: not tested) and SQLite.
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
#[doc = include_str!("../docs/sql.md")]
pub mod sql {}

/// Messages and functions.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
#[doc = include_str!("../docs/messages.md")]
pub mod messages {}

/// Reconciliation.
#[doc = include_str!("../docs/reconciliation.md")]
#[doc = ""]
#[cfg_attr(any(feature = "mysql", feature = "postgres", feature = "sqlite"), doc = "[outbox]: crate::sql::outbox")]
#[cfg_attr(
    not(feature = "_sql"),
    doc = "[outbox]: https://docs.rs/tower-idempotency/latest/tower_idempotency/sql/outbox/index.html"
)]
#[cfg_attr(feature = "_sql", doc = "[unsent]: crate::Reconciler::unsent")]
#[cfg_attr(
    not(feature = "_sql"),
    doc = "[unsent]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Reconciler.html#method.unsent"
)]
pub mod reconciliation {}

/// Guards.
#[cfg(feature = "_sql")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
#[doc = include_str!("../docs/guards.md")]
pub mod guards {}

/// The outbox: first the database, then the broker.
#[cfg(feature = "_sql")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
#[doc = include_str!("../docs/outbox.md")]
pub mod outbox {}

/// The message log: what came in, on record.
#[cfg(feature = "_sql")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
#[doc = include_str!("../docs/message_log.md")]
pub mod message_log {}
