//! What was begun and never ended is found, asked about once, and brought to an end.
#![cfg(all(feature = "json", feature = "memory", feature = "testing"))]

#[macro_use]
mod stores;

#[cfg(feature = "axum")]
mod child_keys;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[allow(dead_code)]
#[path = "../sql/folder.rs"]
mod folder;
mod memory;
mod processes;
#[cfg(feature = "redis")]
#[allow(dead_code)]
#[path = "../redis/server.rs"]
mod redis_server;
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[path = "../sql/server.rs"]
mod server;
