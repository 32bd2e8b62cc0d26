//! On SQLite.

use sqlx::Sqlite;

use super::what_holds_everywhere;

what_holds_everywhere!(Sqlite);
