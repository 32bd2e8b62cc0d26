//! Tower middleware that makes an operation safe to repeat.
//!
//! Requests repeat: a user clicks twice, a client retries after a lost answer, a payment platform sends its
//! notification until it receives the expected answer, a queue delivers at least once. Each route defines how a
//! repeated request is answered. The layer ensures it, also under races, crashes and lost answers, and with several
//! processes.
//!
//! ```
//! use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
//! use tower::ServiceExt;
//! use tower_idempotency::{IdempotencyLayer, MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let app: Router = Router::new()
//!     .route("/orders", post(|| async { (StatusCode::CREATED, "order 7") }))
//!     .layer(IdempotencyLayer::new(MemoryStore::new()));
//!
//! let order = || Request::post("/orders").header("Idempotency-Key", "7f0c").body(Body::empty()).unwrap();
//! let first = app.clone().oneshot(order()).await.unwrap();
//! assert_eq!(first.status(), StatusCode::CREATED);
//!
//! // The retry gets the first answer; the handler does not run again.
//! let retry = app.oneshot(order()).await.unwrap();
//! assert_eq!(retry.status(), StatusCode::CREATED);
//! assert_eq!(retry.headers()["idempotent-replayed"], "true");
//! # }
//! ```
//!
//! # Two ideas
//!
//! - **Anti-resubmit** refuses the second request: [`Policy::reject`].
//! - **Idempotency** accepts the second request: its caller receives the first one's success, and nothing happens
//!   twice. This is [`Policy::replay`], the default.
//!
//! # Where to look
//!
//! | what | where |
//! | --- | --- |
//! | put a layer around a service | [`IdempotencyLayer`] |
//! | define where the key is, whom it belongs to, and what counts as the same request | [`key`], [`scope`], [`fingerprint`] |
//! | define what happens to a repeated request | [`Policy`] |
//! | define what happens to a repeated message or function call | [`RunPolicy`] |
//! | let a form be submitted once | [`Tokens`], [`TokenLayer`], [`TokenIssuer`](token::TokenIssuer) |
//! | receive a platform's callbacks or webhooks | [`preset`] |
//! | handle messages of a broker, run a job or a step once | [`ConsumerLayer`], [`Once`] |
//! | finish what a dead process began | [`Reconciler`], [`Payload`](reconcile::Payload) |
//! | find out in the handler which attempt it is | [`Operation`] |
//! | choose, write or test a store | [`MemoryStore`], [`RedisStore`], the SQL stores ([`guide`]), [`store`], [`testing`] |
//! | reduce the load of duplicates on a store | [`store::CachedStore`] |
//! | encrypt what a store keeps | `store::SealedStore`, with the feature `sealed`: [`guide::security`] |
//! | guard states, versions and business numbers in the database | `sql::guard`, with the feature of a database |
//! | send messages if and only if a transaction is committed | `sql::outbox`, with the feature of a database |
//! | keep what came in, for audits | `MessageLogLayer` and `sql::message_log`, with the feature of a database |
//! | see what happened | [`Observer`], events of `tracing`, and `metrics::Metrics`: [`guide::operating`] |
//! | shut down without losing the work of clients that have left | [`BackgroundTasks`] |
//! | read a guide, or look up a term | [`guide`], [`guide::glossary`] |
//!
//! # What is promised
//!
//! | mode | one at a time | a crash between effect and record | late finisher |
//! | --- | --- | --- | --- |
//! | lease (default) | yes, while the runner renews its lease | the next try runs, and sees [`attempt`](Operation::attempt)` > 1` | its answer is not recorded, and its client is answered from the record |
//! | transaction ([`IdempotencyLayer::transactional`], SQL stores) | yes | rolled back with the effect; the next try runs as if new | its commit fails, once the database has ended its transaction |
//! | at most once ([`Policy::at_most_once`]) | yes | does not run again for its retention (30 days): 409 `outcome-unknown` until it is [reconciled](guide::reconciliation) | as above, unless its record was released while it could still act |
//!
//! The layer cannot know what the store has lost. If the store's reply to a claim is lost, the claim is released, so
//! `outcome-unknown` may be followed by a first run. If the store is unavailable when a handler ends, the client
//! receives an answer that may not be recorded. A failover of Redis may lose records, in each of its modes: an
//! operation that was answered may run again, and a spent token may be spent again. [`guide::promises`] has a table of the
//! consequences in each mode; see also [the refusals](guide::refusals).
//!
//! A lease lapses. If a runner or a store is paused for longer than the lease, another runner can take the claim over,
//! and two runs of one operation overlap. The slower run detects this if it calls [`Operation::is_lost`] right before
//! its effect. An effect that must not happen twice even then needs a guard of its own, such as a unique key in the
//! database.
//!
//! The layer reads an answer to its end before the client receives any of it, so that the answer can be kept. A
//! `text/event-stream` is passed on as it arrives and is not kept; for other streams see [`Operation::stream`] and
//! [`Policy::stream_after`].
//!
//! This crate avoids two mistakes. A distributed lock alone is not idempotency: the lock expires, and the next retry
//! runs. A mark that is set before the work and never settled loses an order: every retry receives the answer that the
//! order was done.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `axum` | yes | the matched route as the route's name, [`key::path`], the [`Operation`] extractor |
//! | `memory` | yes | [`MemoryStore`] |
//! | `tracing` | yes | events, with hashed keys |
//! | `json` | no | [`key::json`], [`fingerprint::json`] and its variants; [`Once`], whose values are kept as JSON |
//! | `form` | no | [`key::form`], [`fingerprint::form`], tokens in `multipart/form-data` |
//! | `xml` | no | [`key::xml`] |
//! | `presets` | no | [`preset`]: payment platforms, webhooks, API conventions in one line each; it includes the three above |
//! | `metrics` | no | `metrics::Metrics`: what happens, as counters, gauges and histograms of the facade `metrics` |
//! | `sealed` | no | `store::SealedStore`: answers and notes are encrypted |
//! | `signed-tokens` | no | [`SigningKeys`], [`Tokens::signed`] |
//! | `redis` | no | [`RedisStore`] |
//! | `redis-cluster` | no | `RedisStore` on a Redis Cluster |
//! | `redis-sentinel` | no | `RedisStore` on a master that Redis Sentinel monitors |
//! | `redis-tls` | no | `rediss://` by rustls, with the certificates of the operating system or others |
//! | `postgres` | no | `PostgresStore`; it needs Rust 1.94, as do the two below |
//! | `mysql` | no | `MySqlStore`, for MariaDB (MySQL: not tested) |
//! | `sqlite` | no | `SqliteStore`, on a file, with no server |
//! | `testing` | no | [`testing`]: a conformance suite for stores, a store with scripted faults, a manual clock |
//!
//! Without `axum` the layer works with plain Tower and Hyper, and the route is the request's path.
//!
//! # The source
//!
//! The [glossary](guide::glossary) defines the terms. The repository has a map of the source, [ARCHITECTURE.md], and
//! the rules for changes, [CONTRIBUTING.md].
//!
//! [ARCHITECTURE.md]: https://github.com/tower-idempotency/tower-idempotency/blob/main/ARCHITECTURE.md
//! [CONTRIBUTING.md]: https://github.com/tower-idempotency/tower-idempotency/blob/main/CONTRIBUTING.md
//!
// Without its feature an item does not exist, so these links lead to docs.rs.
#![cfg_attr(
    not(feature = "json"),
    doc = "[`Once`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Once.html"
)]
#![cfg_attr(
    not(feature = "json"),
    doc = "[`key::json`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/key/fn.json.html"
)]
#![cfg_attr(
    not(feature = "json"),
    doc = "[`fingerprint::json`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/fingerprint/fn.json.html"
)]
#![cfg_attr(
    not(feature = "form"),
    doc = "[`key::form`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/key/fn.form.html"
)]
#![cfg_attr(
    not(feature = "form"),
    doc = "[`fingerprint::form`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/fingerprint/fn.form.html"
)]
#![cfg_attr(
    not(feature = "xml"),
    doc = "[`key::xml`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/key/fn.xml.html"
)]
#![cfg_attr(
    not(feature = "redis"),
    doc = "[`RedisStore`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.RedisStore.html"
)]
#![cfg_attr(
    not(feature = "testing"),
    doc = "[`testing`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/testing/index.html"
)]
#![cfg_attr(
    not(feature = "signed-tokens"),
    doc = "[`SigningKeys`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/token/struct.SigningKeys.html"
)]
#![cfg_attr(
    not(feature = "signed-tokens"),
    doc = "[`Tokens::signed`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Tokens.html#method.signed"
)]
#![cfg_attr(
    not(feature = "memory"),
    doc = "[`MemoryStore`]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.MemoryStore.html"
)]
#![cfg_attr(feature = "signed-tokens", doc = "[`SigningKeys`]: token::SigningKeys")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

mod body;
mod builder;
pub mod consumer;
pub mod cors;
mod engine;
mod extract;
pub mod guide;
mod http;
mod layer;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub mod metrics;
pub mod preset;
mod problem;
pub mod reconcile;
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub mod run;
#[cfg(feature = "_sql")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
pub mod sql;
pub mod store;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
pub mod token;
mod value;

/// The details of an [`Event`]. The verbs of a store are in [`store::StoreVerb`].
pub mod event {
    pub use crate::value::{DeadLetterReason, DropReason, NotKept, WaitEnd};
}

/// The arguments of the closures that a [`Policy`] takes, and what they return.
pub mod policy {
    pub use crate::value::{Answer, Duplicate, ForDuplicates, KeptAnswer, Reply};
}

/// The service of the HTTP layers, with the bodies and the future that are in its signature.
pub mod service {
    #[cfg(feature = "axum")]
    #[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
    pub use crate::layer::extractors::MissingOperation;
    #[cfg(feature = "_sql")]
    #[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
    pub use crate::{
        body::BufferedBody,
        layer::message_log::{MessageId, MessageLogFuture, MessageLogService},
    };
    pub use crate::{
        body::{RequestBody, ResponseBody},
        http::{Idempotency, RefusedRequest, ResponseFuture},
    };
}

#[cfg(all(doctest, feature = "axum", feature = "memory"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "axum", feature = "memory"))]
#[doc = include_str!("../README.zh-CN.md")]
struct ReadmeInChinese;

#[cfg(feature = "_sql")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
pub use self::layer::MessageLogLayer;
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub use self::run::once::Once;
#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub use self::sql::mysql::MySqlStore;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub use self::sql::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::sql::sqlite::SqliteStore;
#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use self::store::memory::MemoryStore;
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub use self::store::redis::RedisStore;
pub use self::{
    consumer::layer::ConsumerLayer,
    engine::{BackgroundTasks, Operation},
    extract::{credential, fingerprint, key, scope},
    layer::{IdempotencyLayer, TokenLayer},
    reconcile::reconciler::Reconciler,
    token::tokens::Tokens,
    value::{
        AfterCrash, Event, Keep, Observer, OnDuplicate, Policy, Protection, Refusal, RunPolicy, Secret, SecretTooShort,
        StoreError, Switch, WhileRunning,
    },
};
