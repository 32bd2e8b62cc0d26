//! On PostgreSQL.

use sqlx::Postgres;

use super::what_holds_everywhere;

what_holds_everywhere!(Postgres);
