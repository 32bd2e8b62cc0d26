//! The SQL stores keep the rules of every store, and go through what a database goes through.
//!
//! SQLite has a file in a temporary folder. PostgreSQL and MariaDB are started by the tests, each on a free port of the
//! loopback and in a temporary folder, and end with the test process.
#![cfg(all(feature = "testing", any(feature = "mysql", feature = "postgres", feature = "sqlite")))]

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod clocks;
mod folder;
#[path = "../http/common/kept_request.rs"]
mod kept_request;
#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(feature = "postgres")]
mod postgres;
mod races;
mod records;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod server;
#[cfg(feature = "sqlite")]
mod sqlite;
