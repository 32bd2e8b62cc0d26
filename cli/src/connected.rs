//! The connection to a store.

use std::{fs, str::FromStr, time::Duration};

use sqlx::{Connection, sqlite::SqliteConnectOptions};
use tokio::time::timeout;
use tower_idempotency::{
    MySqlStore, PostgresStore, RedisStore, SqliteStore,
    sql::{SqlDatabase, SqlStore, SqlStoreBuilder},
    store::StoreAdmin,
};

use crate::{
    arguments::Place,
    failure::{Failure, with_sources},
    store_url::{Kind, StoreUrl},
};

/// How long a call waits for an SQLite file that another process keeps locked.
const BUSY: Duration = Duration::from_secs(5);

/// A store that is connected.
pub(crate) enum Connected {
    Redis(RedisStore),
    Postgres(PostgresStore),
    MySql(MySqlStore),
    Sqlite(SqliteStore),
}

/// Calls a function with the SQL store of a connection; Redis is refused with a message.
macro_rules! on_sql {
    ($connected:expr, $refusal:expr, $store:ident => $call:expr) => {
        match $connected {
            $crate::connected::Connected::Redis(_) => Err($crate::failure::Failure::Usage($refusal.to_owned())),
            $crate::connected::Connected::Postgres($store) => $call,
            $crate::connected::Connected::MySql($store) => $call,
            $crate::connected::Connected::Sqlite($store) => $call,
        }
    };
}
pub(crate) use on_sql;

impl Connected {
    /// Connects to the store. `create` says that an SQLite file may be created.
    pub(crate) async fn open(url: &StoreUrl, place: &Place, create: bool) -> Result<Self, Failure> {
        let opened = match url.kind {
            Kind::Redis => Self::open_redis(url, place).await,
            Kind::Postgres => open_server(url, place).await.map(Self::Postgres),
            Kind::MySql => open_server(url, place).await.map(Self::MySql),
            Kind::Sqlite => Self::open_sqlite(url, place, create).await,
        };
        opened.map_err(|failure| failure.map(|text| url.conceal(text)))
    }

    async fn open_redis(url: &StoreUrl, place: &Place) -> Result<Self, Failure> {
        if place.table.is_some() {
            return Err(Failure::Usage("Redis has no tables: leave --table out".into()));
        }
        let mut builder = RedisStore::builder().connect_timeout(place.timeout()).command_timeout(place.timeout());
        if let Some(pem) = certificates(place)? {
            builder = builder.root_certificates(pem);
        }
        let store = builder.connect(url.exposed()).await?;
        Ok(Self::Redis(place.namespaces.iter().fold(store, |store, name| store.namespace(name))))
    }

    /// Opens an SQLite file. A file that is missing is an error, and the file keeps its settings, unless the tables are to
    /// be created.
    async fn open_sqlite(url: &StoreUrl, place: &Place, create: bool) -> Result<Self, Failure> {
        let builder = builder(place)?.busy_timeout(BUSY);
        let store = if create {
            builder.connect(url.exposed()).await?
        } else {
            let options = SqliteConnectOptions::from_str(url.exposed())
                .map_err(|error| Failure::Usage(format!("the URL of SQLite: {}", with_sources(&error))))?;
            if !options.get_filename().exists() {
                let file = options.get_filename().display();
                return Err(Failure::Store(format!("SQLite: there is no file {file}; `migrate --yes` creates it")));
            }
            builder.connect_with(options.create_if_missing(false).busy_timeout(BUSY)).await?
        };
        Ok(Self::Sqlite(within(store, place)))
    }

    /// Returns the operators' operations.
    pub(crate) fn admin(&self) -> &dyn StoreAdmin {
        match self {
            Self::Redis(store) => store,
            Self::Postgres(store) => store,
            Self::MySql(store) => store,
            Self::Sqlite(store) => store,
        }
    }
}

/// Connects to a database server.
async fn open_server<D: SqlDatabase>(url: &StoreUrl, place: &Place) -> Result<SqlStore<D>, Failure> {
    // A pool would try again for a while, and keep the reason to itself.
    let first = timeout(place.timeout(), D::Connection::connect(url.exposed())).await;
    let first = first.map_err(|_| Failure::Store(format!("{}: no connection in time", D::NAME)))?;
    let first = first.map_err(|error| Failure::Store(format!("{}: {}", D::NAME, with_sources(&error))))?;
    // An error of this goodbye changes nothing.
    let _ = first.close().await;
    Ok(within(builder(place)?.connect(url.exposed()).await?, place))
}

/// Returns a builder with the table that was named. The tool never purges by itself.
fn builder<D: SqlDatabase>(place: &Place) -> Result<SqlStoreBuilder<D>, Failure> {
    let builder = SqlStore::builder().without_purge().max_connections(2);
    match &place.table {
        Some(table) => builder.table(table).map_err(|error| Failure::Usage(format!("--table: {error}"))),
        None => Ok(builder),
    }
}

fn within<D: SqlDatabase>(store: SqlStore<D>, place: &Place) -> SqlStore<D> {
    place.namespaces.iter().fold(store, |store, name| store.namespace(name))
}

/// Reads the certificate authorities that were named.
pub(crate) fn certificates(place: &Place) -> Result<Option<Vec<u8>>, Failure> {
    let read = |file: &std::path::PathBuf| {
        fs::read(file).map_err(|error| Failure::Usage(format!("--ca-file {}: {error}", file.display())))
    };
    place.ca_file.as_ref().map(read).transpose()
}
