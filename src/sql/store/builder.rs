//! The settings of a store, and the ways to connect it.

use std::{fmt, sync::Arc, time::Duration};

use sqlx::{Connection, Database, Pool, pool::PoolOptions};
use tokio::sync::Semaphore;

use crate::{
    sql::{
        SqlStore, driver::SqlDatabase, error::StatementError, statement::Statements, table::Table,
        transaction::InProcessClaims,
    },
    value::{Observer, Observers, StoreError, StoreErrorKind},
};

use super::{
    Purging, SqlShared, connection_cache::ConnectionCache, namespace::Namespace, recent_keys::RecentKeys,
    record_waiters::RecordWaiters,
};

/// How long a call waits for a connection: less than the layers wait for a store, so that the error names the reason.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Builds an [`SqlStore`]; see [`SqlStore::builder`].
#[must_use = "a builder makes no store by itself"]
pub struct SqlStoreBuilder<D: Database> {
    /// The table of the records.
    table: Table,
    space: Namespace,
    /// The size of a pool of the store's own.
    connections: u32,
    /// The pause between two rounds of the purge.
    purge_every: Option<Duration>,
    /// The text that a handler's connection executes before it goes back.
    reset: Option<String>,
    observers: Observers,
    pub(in crate::sql) busy_timeout: Duration,
    driver: std::marker::PhantomData<fn() -> D>,
}

impl<D: SqlDatabase> SqlStoreBuilder<D> {
    pub(in crate::sql) fn new() -> Self {
        Self {
            table: Table::default(),
            space: Namespace::default(),
            connections: 16,
            purge_every: Some(Duration::from_secs(60)),
            reset: None,
            observers: Observers::default(),
            busy_timeout: Duration::from_secs(2),
            driver: std::marker::PhantomData,
        }
    }

    /// Sets the table: `name` or `schema.name`, of letters, digits and underscores. Default: `idempotency_records`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is invalid.
    pub fn table(mut self, name: &str) -> Result<Self, StoreError> {
        self.table = Table::new(name)?;
        Ok(self)
    }

    /// Sets a namespace, which keeps the records apart from those of other applications in the same table. Default:
    /// none.
    ///
    /// The namespace is the same as that of [`SqlStore::namespace`].
    pub fn namespace(mut self, name: &str) -> Self {
        self.space = Namespace::default().within(name);
        self
    }

    /// Sets how many connections the store opens at most, if it opens its own. Default: 16.
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets how often expired records are removed in the background, a thousand at a time. Default: 60 seconds.
    ///
    /// The task is spawned at the first use of the store, on the Tokio runtime of that use, and ends with the last
    /// clone of the store. A random part of up to a half is added to each pause. Of many processes on one table, one
    /// purges at a time; a round that fails is skipped.
    pub fn purge_every(mut self, pause: Duration) -> Self {
        self.purge_every = Some(pause.max(Duration::from_millis(100)));
        self
    }

    /// Switches the removal in the background off: the application calls [`purge`](crate::store::StoreAdmin::purge) by
    /// itself.
    pub fn without_purge(mut self) -> Self {
        self.purge_every = None;
        self
    }

    /// Adds an observer, which receives what this store reports besides requests: its purges, and what the
    /// [outboxes](SqlStore::outbox) and [message logs](SqlStore::message_log) that are made of it do. Several calls add up.
    ///
    /// Requests are reported to the observers of their layer.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.add(observer);
        self
    }

    /// Sets a text to be executed on a connection after a handler has used it in transaction mode and before it is used
    /// again, if the store opens its own connections. Default: none.
    ///
    /// It resets what a handler may have set for its session: `RESET ALL; RESET ROLE` on PostgreSQL. If it fails, the
    /// connection is closed. With a [pool of the application's](Self::pool), use the pool's own `after_release`. The
    /// text must not end prepared statements (`DISCARD ALL`, `DEALLOCATE ALL`): the driver would go on using them.
    pub fn reset_statement(mut self, text: &str) -> Self {
        self.reset = Some(text.to_owned());
        self
    }

    /// Builds the store on a pool of the application's.
    ///
    /// The store keeps up to a quarter of the pool's connections at hand for its own statements while they are in use.
    /// It gives them back when the pool has no other left, when they have not been used for a second, after thirty
    /// seconds in any case, and when the pool is closed. A connection that a handler gets in transaction mode comes
    /// from the pool and goes back to it, so that the pool's hooks see it before and after.
    pub fn pool(self, pool: Pool<D>) -> SqlStore<D> {
        self.on(pool, false)
    }

    /// Creates the store on a pool. `own` says that only the store uses it.
    fn on(self, pool: Pool<D>, own: bool) -> SqlStore<D> {
        let statements = Statements::new(&D::TEXTS, &D::DIALECT, &self.table);
        let writing = D::ONE_WRITER.then(|| Arc::new(Semaphore::new(1)));
        let held = ConnectionCache::new(&pool, own);
        let seats = (pool.options().get_max_connections() as usize).saturating_sub(1).max(1);
        let shared = SqlShared {
            pool,
            held,
            statements,
            table: self.table,
            waiters: RecordWaiters::default(),
            recent_keys: RecentKeys::new(),
            running: InProcessClaims::default(),
            reset: self.reset,
            purging: Purging::new(self.purge_every),
            observers: self.observers,
            seats: Arc::new(Semaphore::new(seats)),
            writing,
        };
        SqlStore { shared: Arc::new(shared), space: self.space }
    }

    /// Connects to the database of a URL, with a pool of the store's own.
    ///
    /// Encrypted connections need a feature of the `sqlx` crate that the application enables, such as `sqlx = { version
    /// = "0.9", features = ["tls-rustls"] }`.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not one of this database, or if the database cannot be reached.
    pub async fn connect(self, url: &str) -> Result<SqlStore<D>, StoreError> {
        // The drivers accept other URLs too, and SQLite's takes anything for a path.
        if !url.split_once(':').is_some_and(|(scheme, _)| D::SCHEMES.contains(&scheme)) {
            let message = format!("{}: the URL is none of this database", D::NAME);
            return Err(StoreError::new(StoreErrorKind::Misconfigured, message).without_effect());
        }
        let options = url.parse().map_err(|error| StatementError::NotSent(error).into_error::<D>(false))?;
        let options = D::configure(options, url, self.busy_timeout)?;
        self.open_with(options).await
    }

    /// Connects to a database with the driver's own options, with a pool of the store's own.
    ///
    /// It is for configurations that have fields instead of a URL, and for certificates: the options cover everything
    /// that a URL cannot express. They are used unchanged. Those of SQLite should set `journal_mode(Wal)`,
    /// `synchronous(Full)` and a `busy_timeout`, as [`open`](SqlStoreBuilder::open) does.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be reached, or if the options are for an SQLite database in memory.
    pub async fn connect_with(
        self,
        options: <D::Connection as Connection>::Options,
    ) -> Result<SqlStore<D>, StoreError> {
        D::check(&options)?;
        self.open_with(options).await
    }

    pub(in crate::sql) async fn open_with(
        self,
        options: <D::Connection as Connection>::Options,
    ) -> Result<SqlStore<D>, StoreError> {
        let pool = PoolOptions::new().max_connections(self.connections).acquire_timeout(ACQUIRE_TIMEOUT);
        match pool.connect_with(options).await {
            Ok(pool) => Ok(self.on(pool, true)),
            Err(error) => Err(StatementError::NotSent(error).into_error::<D>(false)),
        }
    }
}

impl<D: SqlDatabase> fmt::Debug for SqlStoreBuilder<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStoreBuilder")
            .field("database", &D::NAME)
            .field("table", &format_args!("{}", self.table))
            .field("namespace", &self.space.text())
            .finish_non_exhaustive()
    }
}
