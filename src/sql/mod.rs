//! PostgreSQL, MariaDB and SQLite: records, transactions that hold the record and the work, an outbox, guards.

// For maintainers, in reading order:
//
// - `driver`: what differs between the databases; `postgres`, `mysql`, `sqlite` implement it, each beside its `.sql`
//   files.
// - `statement`, `table`, `schema`, `migrate`, `error`: statements, names, the table, errors, the same for all.
// - `store`: records. `transaction`: records in the transaction of the work. `portable`: statements for other crates.
// - `outbox`, `guard`: rows of the application's own, in the same transaction. `message_log`: what came in, outside of
//   any transaction.
//
// All times are the database's. A statement compares what it changes; none relies on what an earlier one has read.

mod driver;
mod error;
pub mod guard;
pub mod message_log;
mod migrate;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
pub mod outbox;
mod portable;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod schema;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
mod statement;
mod store;
mod table;
mod transaction;

pub use self::{
    driver::SqlDatabase,
    portable::{SqlStatement, SqlValue},
    store::{Expired, SqlStore, SqlStoreBuilder},
    transaction::{NoTransaction, Tx},
};
