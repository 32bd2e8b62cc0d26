//! The databases: as stores, with the effect and the record in one transaction, with an outbox, with guards, and with a
//! log of what comes in.
//!
//! SQLite has a file in a temporary folder. PostgreSQL and MariaDB are started by the tests, each on a free port of the
//! loopback and in a temporary folder, and end with the test process.
#![cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]

mod counting;
mod database;
mod folder;
mod guards;
mod message_log;
mod outbox;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod proxy;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod server;
mod store;
mod transactions;

/// One test for each module beside the caller's, on one server, with a database of its own for each function.
macro_rules! on_one_server {
    ($database:ty: $($module:ident::{$($test:ident),* $(,)?}),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $module() {
                let _server = <$database as $crate::database::TestDatabase>::place().await;
                $(
                    println!("{}", stringify!($test));
                    super::$module::$test::<$database>().await;
                )*
            }
        )*
    };
}
pub(crate) use on_one_server;
