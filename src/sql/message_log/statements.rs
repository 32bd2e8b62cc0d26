use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::sql::{
    statement::{Dialect, Statement},
    table::Table,
};

/// The columns that every statement that reads a message returns, in this order; see `logged.rs`.
const LOGGED: &str = "seq, id, route, key_digest, method, path, headers, body, is_cut, arrived_ms, status, answered_ms";

/// The texts of a database, as they are in its files.
#[derive(Clone, Copy, Debug)]
pub struct MessageLogTexts {
    pub(in crate::sql) schema: &'static str,
    pub(in crate::sql) write: &'static str,
    pub(in crate::sql) answered: &'static str,
    pub(in crate::sql) get: &'static str,
    pub(in crate::sql) list: &'static str,
    pub(in crate::sql) list_key: &'static str,
    pub(in crate::sql) old: &'static str,
    pub(in crate::sql) remove: &'static str,
}

/// The statements of a message log, with the name of its table in them.
#[derive(Debug)]
pub(crate) struct MessageLogStatements {
    pub(crate) schema: String,
    pub(crate) write: Statement,
    pub(crate) answered: Statement,
    pub(crate) get: Statement,
    pub(crate) list: Statement,
    pub(crate) list_key: Statement,
    pub(crate) old: Statement,
    pub(crate) remove: Statement,
}

impl MessageLogStatements {
    pub(crate) fn new(texts: &MessageLogTexts, dialect: &Dialect, table: &Table) -> Self {
        let fill = |text: &str| {
            let text = text.replace("{logged}", LOGGED).replace("{key_index}", &table.key_index(dialect.quote));
            dialect.fill(&text, table)
        };
        let statement = |text, reads| {
            let sql: Arc<str> = fill(text).into();
            Statement { sql: AssertSqlSafe(sql).into_sql_str(), reads }
        };
        Self {
            schema: fill(texts.schema) + "\n",
            write: statement(texts.write, false),
            answered: statement(texts.answered, false),
            get: statement(texts.get, true),
            list: statement(texts.list, true),
            list_key: statement(texts.list_key, true),
            old: statement(texts.old, true),
            remove: statement(texts.remove, false),
        }
    }
}

/// Includes the files of the folder `message_log` of a database, relative to the database's folder.
macro_rules! message_log_texts {
    () => {
        message_log_texts!(schema, write, answered, get, list, list_key, old, remove)
    };
    ($($name:ident),*) => {
        $crate::sql::message_log::MessageLogTexts {
            $($name: include_str!(concat!("message_log/", stringify!($name), ".sql")),)*
        }
    };
}
pub(in crate::sql) use message_log_texts;
