//! Stores that several processes can share: one line each.
#![allow(unused_imports, dead_code)] // if no feature brings one
#![allow(clippy::unused_async)] // all alike

use std::{any::Any, sync::Arc};

use tower_idempotency::store::StoreAdmin;

/// A server or a file, as long as this lives.
pub(crate) struct Shared {
    pub(crate) url: String,
    _server: Box<dyn Any + Send>,
}

impl Shared {
    fn new(url: String, server: impl Any + Send) -> Self {
        Self { url, _server: Box::new(server) }
    }

    #[cfg(feature = "redis")]
    pub(crate) async fn redis() -> Self {
        let server = crate::redis_server::Server::start(&[]);
        Self::new(server.url(), server)
    }

    #[cfg(feature = "sqlite")]
    pub(crate) async fn sqlite() -> Self {
        let folder = crate::folder::Folder::quick();
        let shared = Self::new(format!("sqlite:{}?mode=rwc", folder.path().join("records.db").display()), folder);
        tower_idempotency::SqliteStore::connect(&shared.url).await.unwrap().migrate().await.unwrap();
        shared
    }

    #[cfg(feature = "postgres")]
    pub(crate) async fn postgres() -> Self {
        let server = crate::server::Server::postgres();
        let shared = Self::new(format!("postgres://tests@127.0.0.1:{}/postgres", server.port()), server);
        tower_idempotency::PostgresStore::connect(&shared.url).await.unwrap().migrate().await.unwrap();
        shared
    }

    #[cfg(feature = "mysql")]
    pub(crate) async fn mysql() -> Self {
        use sqlx::Connection;

        let server = crate::server::Server::mariadb();
        let root = format!("mysql://root@127.0.0.1:{}", server.port());
        let mut admin = sqlx::MySqlConnection::connect(&root).await.unwrap();
        sqlx::raw_sql("CREATE DATABASE tests").execute(&mut admin).await.unwrap();
        let shared = Self::new(format!("{root}/tests"), server);
        tower_idempotency::MySqlStore::connect(&shared.url).await.unwrap().migrate().await.unwrap();
        shared
    }
}

/// A connection of one's own.
pub(crate) async fn connect(url: &str) -> Arc<dyn StoreAdmin> {
    match url.split(':').next() {
        #[cfg(feature = "redis")]
        Some("redis") => Arc::new(tower_idempotency::RedisStore::connect(url).await.unwrap()),
        #[cfg(feature = "sqlite")]
        Some("sqlite") => Arc::new(tower_idempotency::SqliteStore::connect(url).await.unwrap()),
        #[cfg(feature = "postgres")]
        Some("postgres") => Arc::new(tower_idempotency::PostgresStore::connect(url).await.unwrap()),
        #[cfg(feature = "mysql")]
        Some("mysql") => Arc::new(tower_idempotency::MySqlStore::connect(url).await.unwrap()),
        _ => panic!("no store at {url}"),
    }
}

/// Runs each test on each store.
macro_rules! on_every_store {
    ($($test:ident)*) => {
        on_each!([$($test)*]
            redis "redis"
            sqlite "sqlite"
            postgres "postgres"
            mysql "mysql"
        );
    };
}

macro_rules! on_each {
    ($tests:tt $($store:ident $feature:literal)*) => {
        $(#[cfg(feature = $feature)]
        mod $store {
            each_test!($store $tests);
        })*
    };
}

macro_rules! each_test {
    ($store:ident [$($test:ident)*]) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            super::$test(&$crate::stores::Shared::$store().await).await;
        })*
    };
}
