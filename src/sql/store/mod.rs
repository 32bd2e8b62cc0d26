//! [`SqlStore`]: the verbs of a store as one statement each.
//!
//! # In reading order
//!
//! 1. `mod`: the store, its pool and its table. `builder`: its settings. `store_impl`: the trait `Store`.
//! 2. `namespace`, `values`: what is bound to a statement. `record_row`: what is read back.
//! 3. `claim`, `finish`: the verbs, each a statement that compares and writes. `admin`: the operator's.
//! 4. `retry`: sends a statement until it has an answer. `connection_cache`: connections between two statements.
//! 5. `recent_keys`: a hint which keys have a record. `waiting`, `record_waiters`: waiting for a running record.
//! 6. `purge`: removes what has expired.
//!
//! # What always holds
//!
//! - A verb never reads and then writes on what it has read, unless the write compares what was read: state, claimant,
//!   attempt and both times are in the `WHERE`.
//! - All times are the database's, computed in the statement that uses them. Durations are bound, never moments.
//! - A statement may be sent twice. The claimant in the row shows whether the first one took effect.
//! - A row of a later version is never matched and never changed.
//!
//! # Who locks what
//!
//! The maps in `record_waiters`, `connection_cache` and `transaction/running` have a mutex each, held for one operation and never
//! across an await. On SQLite the permit of `writing` is held for one statement. No code takes two of these locks,
//! except `record_waiters`, which takes the lock of a record while it has that of the map.

mod admin;
mod builder;
pub(in crate::sql) mod claim;
pub(in crate::sql) mod connection_cache;
pub(in crate::sql) mod finish;
pub(in crate::sql) mod namespace;
pub(in crate::sql) mod purge;
pub(in crate::sql) mod recent_keys;
pub(in crate::sql) mod record_row;
pub(in crate::sql) mod record_waiters;
pub(in crate::sql) mod retry;
mod store_impl;
pub(in crate::sql) mod values;
pub(in crate::sql) mod waiting;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use sqlx::{Database, Pool};
use tokio::sync::Semaphore;

use crate::value::{Observers, StoreError};

use self::{
    connection_cache::ConnectionCache, namespace::Namespace, recent_keys::RecentKeys, record_waiters::RecordWaiters,
};
use super::{driver::SqlDatabase, statement::Statements, table::Table, transaction::InProcessClaims};

pub use self::{builder::SqlStoreBuilder, purge::Expired};

/// Keeps records in a table of a database.
///
/// There is one for each database: `PostgresStore`, `MySqlStore` and `SqliteStore`, each behind a feature of its name.
/// These features need Rust 1.94, as the `sqlx` crate does.
///
/// Every clone is a handle on the same pool. If requests race for one key, the table's primary key decides: of any
/// number, it lets one insert.
///
/// # The table
///
/// [`migrate`](Self::migrate) creates it; [`schema`](Self::schema) returns its text for applications that manage their
/// own migrations. The columns may be read: `namespace`, `route`, `scope`, `record_key`, `state`, `attempt` and times
/// in milliseconds since 1970, UTC. To find requests that are stuck, with plain SQL:
///
/// ```sql
/// SELECT route, scope, record_key, attempt, lease_ends_ms
/// FROM idempotency_records WHERE state = 'running' ORDER BY lease_ends_ms;
/// ```
///
/// The column `note` holds what the application keeps with its [`Claim`](crate::store::Claim), such as the raw request;
/// otherwise it is `NULL`. Reconcile by [`StoreAdmin`](crate::store::StoreAdmin), not with `UPDATE`.
///
/// # Time
///
/// All times are the database's own, taken by the statement that uses them; the clocks of the applications have no
/// influence. Expiry is checked on read; expired rows stay until [`purge`](crate::store::StoreAdmin::purge) removes
/// them. Each store does so every minute, a thousand at a time and one process at a time, unless that is [switched
/// off](SqlStoreBuilder::without_purge).
///
/// # Waiting
///
/// A caller that waits for a running request is notified at once if this process ends it through a clone of this store.
/// For changes by other processes, the record is polled two to ten times a second, however many callers wait for it in
/// this process.
///
/// # Failures
///
/// A statement that loses against another (a deadlock, a serialization failure) is sent again, and one whose connection
/// breaks is sent again on another: up to ten times in all, and not after ten seconds. The claimant in the record shows
/// whether the first try took effect.
pub struct SqlStore<D: Database> {
    pub(super) shared: Arc<SqlShared<D>>,
    pub(super) space: Namespace,
}

/// What all handles of a store share.
pub(super) struct SqlShared<D: Database> {
    /// The connections.
    pub(super) pool: Pool<D>,
    /// The connections between two statements.
    pub(super) held: Arc<ConnectionCache<D>>,
    /// The statements, with the name of the table in them.
    pub(super) statements: Statements,
    pub(super) table: Table,
    /// Who waits for which record.
    pub(super) waiters: RecordWaiters,
    /// Which keys have had a record recently.
    pub(super) recent_keys: RecentKeys,
    /// The keys that run in transactions of this process.
    pub(super) running: InProcessClaims,
    /// The text that resets what a handler may have set on a connection of the store's own pool.
    pub(super) reset: Option<String>,
    /// Whether and how often expired records are removed.
    pub(super) purging: Purging,
    /// Of purges, and of the outboxes and message logs that are made of this store.
    pub(super) observers: Observers,
    /// Bounds the transactions of the work: one connection is left for the store's own statements.
    pub(super) seats: Arc<Semaphore>,
    /// Bounds the writers to one, if the database has one writer at a time.
    pub(super) writing: Option<Arc<Semaphore>>,
}

/// Whether and how often a store removes expired records, once it is used.
pub(super) struct Purging {
    /// The pause between two rounds; `None` if it is switched off.
    every: Option<Duration>,
    /// Whether the background task was spawned, which the first statement does.
    began: AtomicBool,
}

impl Purging {
    /// Creates the setting; nothing is spawned yet.
    pub(in crate::sql) fn new(every: Option<Duration>) -> Self {
        Self { every, began: AtomicBool::new(false) }
    }
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Creates a store in the table `idempotency_records`, on a pool of the application's.
    ///
    /// Nothing is sent to the database yet.
    pub fn new(pool: Pool<D>) -> Self {
        Self::builder().pool(pool)
    }

    /// Returns a builder, for another table or other limits.
    pub fn builder() -> SqlStoreBuilder<D> {
        SqlStoreBuilder::new()
    }

    /// Returns a handle on the same table, whose keys never collide with those of this one or of any other namespace.
    ///
    /// The handle lists and counts its own records only. A namespace within a namespace differs from one of the same
    /// name next to it.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), space: self.space.within(name) }
    }

    /// Returns the pool that the store uses.
    pub fn pool(&self) -> &Pool<D> {
        &self.shared.pool
    }

    /// The version of the table that this version of the crate works with; the files in the folder `migrations` of this
    /// package are named after it.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Returns the statements that create the table and its index if they do not exist, for applications that manage
    /// their own migrations. The same text, for the default table, is in the folder `migrations` of this package.
    pub fn schema(&self) -> String {
        D::DIALECT.fill(D::TEXTS.schema, &self.shared.table) + "\n"
    }

    /// Brings the table and its index up to [`SCHEMA_VERSION`](Self::SCHEMA_VERSION). Several processes may call it at
    /// once, while older ones go on working.
    ///
    /// It reads the catalogue, and changes only what is missing: if the table is complete, it needs only the right to
    /// read, and waits for no lock. Columns are only ever added, with a default, so that processes of an earlier
    /// version can go on writing rows.
    ///
    /// A change does not block other sessions for long: if transactions hold the table, it gives up after a moment and
    /// tries again, for half a minute. After three seconds each try waits for up to a second, and so do transactions that
    /// begin meanwhile: otherwise those that overlap could keep it out for good.
    ///
    /// # Errors
    ///
    /// Returns an error if the table differs from that of [`schema`](Self::schema), if the user may not change it, or
    /// if others have held it all the time.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.bring_up(&self.shared.table, &self.schema()).await
    }

    /// Returns what [`migrate`](Self::migrate) would change, one sentence for each change and in their order: empty if
    /// the table is complete.
    ///
    /// It reads the catalogue and changes nothing. The sentences are for people, and may be worded differently in
    /// another version.
    ///
    /// # Errors
    ///
    /// Returns an error if the table differs from that of [`schema`](Self::schema) in a way that `migrate` cannot
    /// mend, or if the database cannot be reached.
    pub async fn pending_migrations(&self) -> Result<Vec<String>, StoreError> {
        self.pending(&self.shared.table, &self.schema()).await
    }

    /// Returns the columns of the table that this version does not know, in order: a later version has added them, or
    /// somebody else has. The store works beside them. It reads the catalogue and changes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be reached.
    pub async fn unknown_columns(&self) -> Result<Vec<String>, StoreError> {
        self.unknown(&self.shared.table, &self.schema()).await
    }
}

impl<D: Database> Clone for SqlStore<D> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), space: self.space.clone() }
    }
}

/// Omits host, user and password.
impl<D: Database> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStore")
            .field("database", &D::NAME)
            .field("table", &format_args!("{}", self.shared.table))
            .field("namespace", &self.space.text())
            .finish_non_exhaustive()
    }
}
