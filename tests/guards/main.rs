//! Guards on each database, alone and in races.
//!
//! SQLite has a file in a temporary folder. PostgreSQL and MariaDB are started by the tests.
#![cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]

#[cfg(all(feature = "axum", feature = "json", feature = "sqlite"))]
mod callback;
#[path = "../sql/folder.rs"]
#[allow(dead_code)]
mod folder;
mod model;
#[macro_use]
mod rules;

#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(all(feature = "axum", feature = "json", feature = "redis", feature = "sqlite"))]
#[path = "../redis/server.rs"]
#[allow(dead_code)]
mod redis;
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[path = "../sql/server.rs"]
mod server;
#[cfg(feature = "sqlite")]
mod sqlite;
