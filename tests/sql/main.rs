//! The SQL stores keep the rules of every store, and go through what a database goes through.
//!
//! SQLite has a file in a temporary folder. PostgreSQL and MariaDB are started by the tests, each on a free port of the
//! loopback and in a temporary folder, and end with the test process.
#![cfg(all(
    feature = "testing",
    feature = "tracing",
    any(feature = "mysql", feature = "postgres", feature = "sqlite")
))]

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod clocks;
mod counting;
mod folder;
#[path = "../http/common/kept_request.rs"]
mod kept_request;
mod lab;
#[cfg(feature = "mysql")]
mod mariadb;
mod migrations;
#[cfg(feature = "postgres")]
mod postgres;
mod purging;
mod races;
mod records;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod server;
mod sizes;
#[cfg(feature = "sqlite")]
mod sqlite;
mod waiting;
#[path = "../http/common/walk.rs"]
mod walk;
#[path = "../http/common/windows.rs"]
mod windows;
