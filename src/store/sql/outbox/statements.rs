use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::store::sql::{
    statements::{Dialect, Statement},
    table::Table,
};

/// The columns that every statement that reads a message returns, in this order; see `message.rs`.
const MESSAGE: &str = "seq, id, topic, message_key, headers, payload, created_ms, attempts";

/// The texts of a database, as they are in its files.
#[derive(Clone, Copy, Debug)]
pub struct Texts {
    pub(in crate::store::sql) schema: &'static str,
    pub(in crate::store::sql) stage: &'static str,
    pub(in crate::store::sql) heads: &'static str,
    pub(in crate::store::sql) first: &'static str,
    pub(in crate::store::sql) lease: &'static str,
    pub(in crate::store::sql) sent: &'static str,
    pub(in crate::store::sql) failed: &'static str,
    pub(in crate::store::sql) unsent: &'static str,
    pub(in crate::store::sql) stats: &'static str,
    pub(in crate::store::sql) discard: &'static str,
    pub(in crate::store::sql) old: &'static str,
    pub(in crate::store::sql) remove: &'static str,
}

/// The statements of an outbox, with the name of its table in them.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) schema: String,
    pub(super) stage: Statement,
    pub(super) heads: Statement,
    /// Whether reading the heads also leases them.
    pub(super) heads_lease: bool,
    pub(super) first: Statement,
    pub(super) lease: Statement,
    pub(super) sent: Statement,
    pub(super) failed: Statement,
    pub(super) unsent: Statement,
    pub(super) stats: Statement,
    pub(super) discard: Statement,
    pub(super) old: Statement,
    pub(super) remove: Statement,
}

impl Statements {
    pub(super) fn new(texts: &Texts, dialect: &Dialect, table: &Table) -> Self {
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
            discard: statement(texts.discard, false),
            old: statement(texts.old, true),
            remove: statement(texts.remove, false),
        }
    }
}

/// Includes the files of a folder.
macro_rules! outbox_texts {
    ($folder:literal) => {
        outbox_texts!($folder: schema, stage, heads, first, lease, sent, failed, unsent, stats, discard, old, remove)
    };
    ($folder:literal: $($name:ident),*) => {
        $crate::store::sql::outbox::Texts {
            $($name: include_str!(concat!("outbox/", $folder, "/", stringify!($name), ".sql")),)*
        }
    };
}
pub(in crate::store::sql) use outbox_texts;
