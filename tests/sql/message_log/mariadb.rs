//! On MariaDB.

use sqlx::MySql;

use super::what_holds_everywhere;

what_holds_everywhere!(MySql);
