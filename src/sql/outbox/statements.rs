use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::sql::{
    statement::{Dialect, Statement},
    table::Table,
};

/// The columns that every statement that reads a message returns, in this order; see `message.rs`.
const MESSAGE: &str = "seq, id, topic, message_key, headers, payload, created_ms, attempts";

/// The texts of a database, as they are in its files.
#[derive(Clone, Copy, Debug)]
pub struct OutboxTexts {
    pub(in crate::sql) schema: &'static str,
    pub(in crate::sql) stage: &'static str,
    pub(in crate::sql) heads: &'static str,
    pub(in crate::sql) first: &'static str,
    pub(in crate::sql) lease: &'static str,
    pub(in crate::sql) sent: &'static str,
    pub(in crate::sql) failed: &'static str,
    pub(in crate::sql) unsent: &'static str,
    pub(in crate::sql) stats: &'static str,
    pub(in crate::sql) retry: &'static str,
    pub(in crate::sql) discard: &'static str,
    pub(in crate::sql) old: &'static str,
    pub(in crate::sql) remove: &'static str,
}

/// The statements of an outbox, with the name of its table in them.
#[derive(Debug)]
pub(crate) struct OutboxStatements {
    pub(crate) schema: String,
    pub(crate) stage: Statement,
    pub(crate) heads: Statement,
    /// Whether reading the heads also leases them.
    pub(crate) heads_lease: bool,
    pub(crate) first: Statement,
    pub(crate) lease: Statement,
    pub(crate) sent: Statement,
    pub(crate) failed: Statement,
    pub(crate) unsent: Statement,
    pub(crate) stats: Statement,
    pub(crate) retry: Statement,
    pub(crate) discard: Statement,
    pub(crate) old: Statement,
    pub(crate) remove: Statement,
}

impl OutboxStatements {
    pub(crate) fn new(texts: &OutboxTexts, dialect: &Dialect, table: &Table) -> Self {
        let fill = |text: &str| {
            let text = text.replace("{message}", MESSAGE).replace("{key_index}", &table.key_index(dialect.quote));
            dialect.fill(&text, table)
        };
        let statement = |text, reads| {
            let sql: Arc<str> = fill(text).into();
            Statement { sql: AssertSqlSafe(sql).into_sql_str(), reads }
        };
        Self {
            schema: fill(texts.schema) + "\n",
            stage: statement(texts.stage, false),
            heads: statement(texts.heads, true),
            heads_lease: texts.heads.contains("RETURNING"),
            first: statement(texts.first, true),
            lease: statement(texts.lease, false),
            sent: statement(texts.sent, false),
            failed: statement(texts.failed, false),
            unsent: statement(texts.unsent, true),
            stats: statement(texts.stats, true),
            retry: statement(texts.retry, false),
            discard: statement(texts.discard, false),
            old: statement(texts.old, true),
            remove: statement(texts.remove, false),
        }
    }
}

/// Includes the files of the folder `outbox` of a database, relative to the database's folder.
macro_rules! outbox_texts {
    () => {
        outbox_texts!(schema, stage, heads, first, lease, sent, failed, unsent, stats, retry, discard, old, remove)
    };
    ($($name:ident),*) => {
        $crate::sql::outbox::OutboxTexts { $($name: include_str!(concat!("outbox/", stringify!($name), ".sql")),)* }
    };
}
pub(in crate::sql) use outbox_texts;
