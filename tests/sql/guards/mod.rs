//! Guards on each database, alone and in races.

#[cfg(feature = "sqlite")]
mod callback;
mod model;
#[macro_use]
mod rules;

#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(all(feature = "redis", feature = "sqlite"))]
#[path = "../../redis/server.rs"]
#[allow(dead_code)]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
