mod builder;
mod claim;
mod driver;
mod error;
mod finish;
mod held;
mod line;
mod met;
mod migrating;
#[cfg(feature = "mysql")]
mod mysql;
mod admin;
mod outbox;
mod portable;
#[cfg(feature = "postgres")]
mod postgres;
mod purging;
mod room;
mod schema;
mod space;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statements;
mod stored;
mod table;
mod transaction;
mod values;
mod verbs;
mod waiting;

use std::{fmt, sync::Arc};

use sqlx::{Database, Pool};
use tokio::sync::Semaphore;

use crate::value::StoreError;

use self::{
    driver::Driver, held::Held, met::RecentKeys, purging::Purging, room::Room, space::Space, statements::Statements,
    table::Table, transaction::Running,
};

#[cfg(feature = "mysql")]
pub use self::mysql::MySqlStore;
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteStore;
pub(crate) use self::table::is_identifier;
pub use self::{
    builder::SqlStoreBuilder,
    driver::SqlDatabase,
    outbox::{Message, Outbox, OutboxStats, StagedMessage},
    portable::{SqlStatement, SqlValue},
    transaction::{NoTransaction, Tx},
};

/// Keeps records in a table of a database.
///
/// There is one for each database: `PostgresStore`, `MySqlStore` and `SqliteStore`, each behind a feature of its name.
/// These features need Rust 1.94, as the `sqlx` crate does.
///
/// Every clone is a handle on the same pool. What races on one key is decided by the table's primary key, which any
/// number of racers cannot get past.
///
/// # The table
///
/// [`migrate`](Self::migrate) creates it; [`schema`](Self::schema) is the text for those who own their migrations. The
/// columns are there to be read: `namespace`, `route`, `scope`, `record_key`, `state`, `attempt` and times in
/// milliseconds since 1970, UTC. What is stuck, with plain SQL:
///
/// ```sql
/// SELECT route, scope, record_key, attempt, lease_ends_ms
/// FROM idempotency_records WHERE state = 'running' ORDER BY lease_ends_ms;
/// ```
///
/// The column `note` is for what the application keeps with its [`Claim`](crate::store::Claim), such as the raw
/// request, and `NULL` unless it does. Reconcile by [`StoreAdmin`](crate::store::StoreAdmin), not with `UPDATE`.
///
/// # Time
///
/// All times are the database's own, taken by the statement that uses them; what the clocks of the applications say
/// changes nothing. Expiry is checked on read; rows that have expired stay until [`purge`](crate::store::StoreAdmin::purge)
/// removes them, which each store has done every minute, a thousand at a time and by one process at a time, unless it is
/// [told not to](SqlStoreBuilder::without_purge).
///
/// # Waiting
///
/// Whoever waits for a running request hears at once of what this process does to it through a clone of this store. For
/// what other processes do, the record is looked at two to ten times a second, however many wait for it here.
///
/// # Failures
///
/// A statement that loses against another (a deadlock, a serialization failure) is sent again, and one whose connection
/// breaks is sent again on another: up to ten times in all, and not after ten seconds. The claimant in the record tells
/// whether it had been done.
pub struct SqlStore<D: Database> {
    shared: Arc<Shared<D>>,
    space: Space,
}

struct Shared<D: Database> {
    pool: Pool<D>,
    held: Arc<Held<D>>,
    statements: Statements,
    table: Table,
    room: Room,
    met: RecentKeys,
    running: Running,
    /// What takes back what a handler may have left on a connection of the store's own pool.
    reset: Option<String>,
    purging: Purging,
    /// How many transactions of the work there may be: one connection is left for what they need beside.
    seats: Arc<Semaphore>,
    /// Whose turn it is to write, where only one can.
    writing: Option<Arc<Semaphore>>,
}

impl<D: Driver> SqlStore<D> {
    /// A store in the table `idempotency_records`, on a pool of the application's.
    ///
    /// Nothing is asked of the database yet.
    pub fn new(pool: Pool<D>) -> Self {
        Self::builder().pool(pool)
    }

    /// A store in another table or with other limits.
    pub fn builder() -> SqlStoreBuilder<D> {
        SqlStoreBuilder::new()
    }

    /// A handle on the same table whose keys never meet those of this one, nor those of any other namespace.
    ///
    /// It lists and counts its own records only. A namespace of a namespace is another one than that of the same name
    /// beside it.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), space: self.space.within(name) }
    }

    /// The pool that the store works on.
    pub fn pool(&self) -> &Pool<D> {
        &self.shared.pool
    }

    /// The version of the table that this version of the crate works with; the files in the folder `migrations` of this
    /// package are named by it.
    pub const SCHEMA_VERSION: u32 = 1;

    /// The statements that create the table and its index, if they are not there: for those who own their
    /// migrations. The same text, for the default table, is in the folder `migrations` of this package.
    pub fn schema(&self) -> String {
        D::DIALECT.fill(D::TEXTS.schema, &self.shared.table) + "\n"
    }

    /// Brings the table and its index up to [`SCHEMA_VERSION`](Self::SCHEMA_VERSION). Several processes may call it at
    /// once, and older ones may go on working meanwhile.
    ///
    /// It reads the catalogue, and changes only what is missing: with a table that is complete it needs no other right than
    /// to read, and waits for nobody. Columns are only ever added, with a default, so that processes of an earlier version
    /// can go on writing rows.
    ///
    /// What has to be changed is changed without standing in the way of others: if transactions hold the table, it gives up
    /// after a moment and tries again, for half a minute.
    ///
    /// # Errors
    ///
    /// Returns an error if the table is another than that of [`schema`](Self::schema), if the user may not change it, or if
    /// others have held it all the time.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.bring_up(&self.shared.table, &self.schema()).await
    }
}

impl<D: Database> Clone for SqlStore<D> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), space: self.space.clone() }
    }
}

/// Without host, user and password.
impl<D: Database> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStore")
            .field("database", &D::NAME)
            .field("table", &format_args!("{}", self.shared.table))
            .field("namespace", &self.space.text())
            .finish_non_exhaustive()
    }
}
