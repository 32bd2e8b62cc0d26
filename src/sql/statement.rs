//! The statements: their texts from `.sql` files, with the names of the table and the dialect's expressions filled in
//! once.
//!
//! In the files `{table}`, `{now}`, `{record}`, `{index}` and `{batch}` stand for what differs. A statement that is
//! missing in a folder does not compile.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::table::Table;

/// How many records one statement removes. The number is constant, so that there is one prepared statement.
pub(crate) const BATCH: usize = 50;

/// The columns that every statement that reads a record returns, in this order; see `stored.rs`.
const RECORD: &str = "{now}, state, claimant, attempt, fingerprint, caller, at_most_once, takeover, created_ms, \
                      changed_ms, lease_ends_ms, expires_ms, purpose, principal, payload, version, secret, \
                      origin_caller, origin_secret, caller_is_new, trace";

/// The dialect of a database's texts.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The expression for its clock: milliseconds since 1970.
    pub(crate) now: &'static str,
    pub(crate) quote: char,
    /// Returns the placeholder of a value, by its number.
    pub(crate) placeholder: fn(usize) -> String,
    /// Changes a claiming statement so that it does not wait for a lock, for use in a transaction of the work.
    pub(crate) enter: fn(&str) -> String,
}

impl Dialect {
    /// Replaces what is in braces in a text.
    pub(crate) fn fill(&self, text: &str, table: &Table) -> String {
        let batch: Vec<_> = (1..=BATCH).map(self.placeholder).collect();
        text.trim_end()
            .replace("{record}", RECORD)
            .replace("{now}", self.now)
            .replace("{table}", &table.quoted(self.quote))
            .replace("{index}", &table.index(self.quote))
            .replace("{batch}", &batch.join(", "))
    }
}

/// A statement, and whether it returns rows or a number of rows.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The text. It is shared, so that a driver caches the prepared statement by it.
    pub(crate) sql: SqlStr,
    /// Whether it returns rows, and not a number of changed rows.
    pub(crate) reads: bool,
}

/// Declares the statements: a name, what it returns, and a file in each database's folder.
macro_rules! statements {
    ($($name:ident: $kind:ident,)*) => {
        /// The texts of a database, as they are in its files.
        #[derive(Clone, Copy, Debug)]
        pub struct Texts {
            pub(crate) schema: &'static str,
            /// The claim in a transaction of the work, if it is another statement than `claim`.
            pub(crate) open: Option<&'static str>,
            $(pub(crate) $name: &'static str,)*
        }

        /// The statements of a store, with the name of its table in them.
        #[derive(Debug)]
        pub(crate) struct Statements {
            $(pub(crate) $name: Statement,)*
            pub(crate) enter: Enter,
        }

        impl Statements {
            pub(crate) fn new(texts: &Texts, dialect: &Dialect, table: &Table) -> Self {
                let statement = |text: &str, reads| {
                    let sql: Arc<str> = dialect.fill(text, table).into();
                    Statement { sql: AssertSqlSafe(sql).into_sql_str(), reads }
                };
                let enter = |text| statement(&(dialect.enter)(text), false);
                Self {
                    $($name: statement(texts.$name, statements!(@$kind, texts.$name)),)*
                    enter: Enter { open: texts.open.map_or_else(|| enter(texts.claim), |text| statement(text, false)), begin: enter(texts.begin), take: enter(texts.take) },
                }
            }
        }
    };
    (@reads, $text:expr) => { true };
    (@writes, $text:expr) => { false };
    // PostgreSQL claims and reads in one statement.
    (@either, $text:expr) => { $text.contains("{record}") };
}

/// The statements that claim in a transaction of the work, in which they do not wait for a lock: on a key that is free,
/// one that has expired, one that can be taken over.
#[derive(Debug)]
pub(crate) struct Enter {
    pub(crate) open: Statement,
    pub(crate) begin: Statement,
    pub(crate) take: Statement,
}

statements! {
    claim: either,
    look: reads,
    begin: writes,
    take: writes,
    renew: writes,
    settle: writes,
    settle_as: writes,
    release: writes,
    release_as: writes,
    undo_first: writes,
    undo: writes,
    claim_in: writes,
    issue: writes,
    reissue: writes,
    record_failure: writes,
    runs: reads,
    inspect: reads,
    list: reads,
    list_state: reads,
    list_abandoned: reads,
    forget: writes,
    expired: reads,
    expired_in: reads,
    count_expired: reads,
    remove: writes,
    stats: reads,
}

/// Includes the files of a database's folder, relative to it.
macro_rules! texts {
    () => {
        texts! {
            "claims": claim look begin take claim_in issue reissue runs,
            "endings": renew settle release undo_first undo record_failure,
            "admin": settle_as release_as inspect list list_state list_abandoned forget expired expired_in count_expired remove stats,
        }
    };
    ($($folder:literal: $($name:ident)*,)*) => {
        $crate::sql::statement::Texts {
            schema: include_str!("schema.sql"),
            open: None,
            $($($name: include_str!(concat!($folder, "/", stringify!($name), ".sql")),)*)*
        }
    };
}
pub(super) use texts;
