use std::{fmt, sync::Arc, time::Duration};

use sqlx::{Connection, Database, Pool, pool::PoolOptions};
use tokio::sync::Semaphore;

use crate::value::{StoreError, StoreErrorKind};

use super::{
    Shared, SqlStore, driver::Driver, error::Trouble, held::Held, met::Met, space::Space, statements::Statements,
    table::Table, transaction::Running, waiting::Room,
};

/// How long a verb waits for a connection. Less than the layers wait for a store, so that the reason is told.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes an [`SqlStore`]; see [`SqlStore::builder`].
#[must_use = "a builder makes no store by itself"]
pub struct SqlStoreBuilder<D: Database> {
    table: Table,
    space: Space,
    connections: u32,
    pub(super) busy_timeout: Duration,
    driver: std::marker::PhantomData<fn() -> D>,
}

impl<D: Driver> SqlStoreBuilder<D> {
    pub(super) fn new() -> Self {
        Self {
            table: Table::default(),
            space: Space::default(),
            connections: 16,
            busy_timeout: Duration::from_secs(2),
            driver: std::marker::PhantomData,
        }
    }

    /// The table: `name` or `schema.name`, of letters, digits and underscores. Default: `idempotency_records`.
    ///
    /// # Errors
    ///
    /// Where the name is none.
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

    /// How many connections the store opens at most, where it opens its own. Default: 16.
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// A store on a pool of the application's.
    ///
    /// The store keeps up to a quarter of its connections at hand while they are in use, and gives them back when the
    /// pool has no other left, when they were not used for a second, and when the pool is closed.
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
            met: Met::new(),
            running: Running::default(),
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
    /// Where the URL is none for this database, and where the database cannot be reached.
    pub async fn connect(self, url: &str) -> Result<SqlStore<D>, StoreError> {
        // The drivers take other URLs too, and SQLite's takes anything for a path.
        if !url.split_once(':').is_some_and(|(scheme, _)| D::SCHEMES.contains(&scheme)) {
            let message = format!("{}: the URL is none of this database", D::NAME);
            return Err(StoreError::new(StoreErrorKind::Misconfigured, message).without_effect());
        }
        let options = url.parse().map_err(|error| Trouble::Unsent(error).into_error::<D>(false))?;
        let options = D::configure(options, url, self.busy_timeout)?;
        self.open_with(options).await
    }

    pub(super) async fn open_with(
        self,
        options: <D::Connection as Connection>::Options,
    ) -> Result<SqlStore<D>, StoreError> {
        let pool = PoolOptions::new().max_connections(self.connections).acquire_timeout(ACQUIRE_TIMEOUT);
        match pool.connect_with(options).await {
            Ok(pool) => Ok(self.on(pool, true)),
            Err(error) => Err(Trouble::Unsent(error).into_error::<D>(false)),
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
