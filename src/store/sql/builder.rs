use std::{fmt, sync::Arc, time::Duration};

use sqlx::{Connection, Database, Pool, pool::PoolOptions};
use tokio::sync::Semaphore;

use crate::value::{StoreError, StoreErrorKind};

use super::{
    Shared, SqlStore, driver::Driver, error::CommandError, held::Held, met::RecentKeys, purging::Purging, room::Room, space::Space,
    statements::Statements, table::Table, transaction::Running,
};

/// How long a verb waits for a connection. Less than the layers wait for a store, so that the reason is told.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes an [`SqlStore`]; see [`SqlStore::builder`].
#[must_use = "a builder makes no store by itself"]
pub struct SqlStoreBuilder<D: Database> {
    table: Table,
    space: Space,
    connections: u32,
    purge_every: Option<Duration>,
    reset: Option<String>,
    pub(super) busy_timeout: Duration,
    driver: std::replay_header::PhantomData<fn() -> D>,
}

impl<D: Driver> SqlStoreBuilder<D> {
    pub(super) fn new() -> Self {
        Self {
            table: Table::default(),
            space: Space::default(),
            connections: 16,
            purge_every: Some(Duration::from_secs(60)),
            reset: None,
            busy_timeout: Duration::from_secs(2),
            driver: std::replay_header::PhantomData,
        }
    }

    /// The table: `name` or `schema.name`, of letters, digits and underscores. Default: `idempotency_records`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is none.
    pub fn table(mut self, name: &str) -> Result<Self, StoreError> {
        self.table = Table::new(name)?;
        Ok(self)
    }

    /// Keeps the records apart from those of other applications in the same table. Default: none.
    ///
    /// It is the same namespace as that of [`SqlStore::namespace`].
    pub fn namespace(mut self, name: &str) -> Self {
        self.space = Space::default().within(name);
        self
    }

    /// How many connections the store opens at most, if it opens its own. Default: 16.
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Removes expired records this often, in the background, a thousand at a time. Default: 60 seconds.
    ///
    /// It begins with the first use of the store, within that use's Tokio runtime, and ends with the last clone of the
    /// store. The pauses are up to half as long again, at random. Of many processes on one table one purges at a time; a
    /// round that fails is left out.
    pub fn purge_every(mut self, pause: Duration) -> Self {
        self.purge_every = Some(pause.max(Duration::from_millis(100)));
        self
    }

    /// Removes nothing in the background: [`purge`](crate::store::StoreAdmin::purge) is called elsewhere.
    pub fn without_purge(mut self) -> Self {
        self.purge_every = None;
        self
    }

    /// Executes this text on a connection that a handler has had in transaction mode, before anybody else has it, if the
    /// store opens its own connections. Default: nothing.
    ///
    /// It takes back what a handler may have set for its session: `RESET ALL; RESET ROLE` on PostgreSQL. The connection is
    /// closed if it fails. With a [pool of the application's](Self::pool) this is done by the pool's own `after_release`.
    /// Do not end prepared statements by it (`DISCARD ALL`, `DEALLOCATE ALL`): the driver would go on using them.
    pub fn reset_statement(mut self, text: &str) -> Self {
        self.reset = Some(text.to_owned());
        self
    }

    /// A store on a pool of the application's.
    ///
    /// The store keeps up to a quarter of its connections at hand for its own statements while they are in use, and gives
    /// them back when the pool has no other left, when they were not used for a second, after thirty seconds in any case,
    /// and when the pool is closed. A connection that a handler gets in transaction mode comes from the pool and goes back
    /// to it, so that the pool's hooks see it before and after.
    pub fn pool(self, pool: Pool<D>) -> SqlStore<D> {
        self.on(pool, false)
    }

    fn on(self, pool: Pool<D>, own: bool) -> SqlStore<D> {
        let statements = Statements::new(&D::TEXTS, &D::DIALECT, &self.table);
        let writing = D::ONE_WRITER.then(|| Arc::new(Semaphore::new(1)));
        let held = Held::new(&pool, own);
        let seats = (pool.options().get_max_connections() as usize).saturating_sub(1).max(1);
        let shared = Shared {
            pool,
            held,
            statements,
            table: self.table,
            room: Room::default(),
            met: RecentKeys::new(),
            running: Running::default(),
            reset: self.reset,
            purging: Purging::new(self.purge_every),
            seats: Arc::new(Semaphore::new(seats)),
            writing,
        };
        SqlStore { shared: Arc::new(shared), space: self.space }
    }

    /// Connects to the database at a URL, with a pool of the store's own.
    ///
    /// Encrypted connections are a feature of the `sqlx` crate that the application switches on, such as
    /// `sqlx = { version = "0.9", features = ["tls-rustls"] }`.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is none for this database, or if the database cannot be reached.
    pub async fn connect(self, url: &str) -> Result<SqlStore<D>, StoreError> {
        // The drivers take other URLs too, and SQLite's takes anything for a path.
        if !url.split_once(':').is_some_and(|(scheme, _)| D::SCHEMES.contains(&scheme)) {
            let message = format!("{}: the URL is none of this database", D::NAME);
            return Err(StoreError::new(StoreErrorKind::Misconfigured, message).without_effect());
        }
        let options = url.parse().map_err(|error| CommandError::Unsent(error).into_error::<D>(false))?;
        let options = D::configure(options, url, self.busy_timeout)?;
        self.open_with(options).await
    }

    /// Connects to a database with the driver's own options, with a pool of the store's own.
    ///
    /// For configurations that have fields instead of a URL, and for certificates: the options know all that a URL cannot
    /// say. They are taken as they are. Those of SQLite should ask for `journal_mode(Wal)`, `synchronous(Full)` and a
    /// `busy_timeout`, as [`open`](SqlStoreBuilder::open) does.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be reached, and if SQLite is asked for a database in memory.
    pub async fn connect_with(
        self,
        options: <D::Connection as Connection>::Options,
    ) -> Result<SqlStore<D>, StoreError> {
        D::check(&options)?;
        self.open_with(options).await
    }

    pub(super) async fn open_with(
        self,
        options: <D::Connection as Connection>::Options,
    ) -> Result<SqlStore<D>, StoreError> {
        let pool = PoolOptions::new().max_connections(self.connections).acquire_timeout(ACQUIRE_TIMEOUT);
        match pool.connect_with(options).await {
            Ok(pool) => Ok(self.on(pool, true)),
            Err(error) => Err(CommandError::Unsent(error).into_error::<D>(false)),
        }
    }
}

impl<D: Driver> fmt::Debug for SqlStoreBuilder<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStoreBuilder")
            .field("database", &D::NAME)
            .field("table", &format_args!("{}", self.table))
            .field("namespace", &self.space.text())
            .finish_non_exhaustive()
    }
}
