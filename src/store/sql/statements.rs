use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::table::Table;

/// How many records one statement removes. The number is constant, so that there is one prepared statement.
pub(super) const BATCH: usize = 50;

/// The columns that every statement that reads a record returns, in this order; see `stored.rs`.
const RECORD: &str = "{now}, state, claimant, attempt, fingerprint, caller, at_most_once, takeover, created_ms, \
                      changed_ms, lease_ends_ms, expires_ms, purpose, principal, payload, version, secret, \
                      origin_caller, origin_secret, caller_is_new, trace";

/// The dialect of a database's texts.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The expression for its clock: milliseconds since 1970.
    pub(super) now: &'static str,
    pub(super) quote: char,
    /// Returns the placeholder of a value, by its number.
    pub(super) placeholder: fn(usize) -> String,
    /// Changes a claiming statement so that it does not wait for a lock, for use in a transaction of the work.
    pub(super) enter: fn(&str) -> String,
}

impl Dialect {
    /// Replaces what is in braces in a text.
    pub(super) fn fill(&self, text: &str, table: &Table) -> String {
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
    pub(super) sql: SqlStr,
    pub(super) reads: bool,
}

/// Declares the statements: a name, what it returns, and a file in each database's folder.
macro_rules! statements {
    ($($name:ident: $kind:ident,)*) => {
        /// The texts of a database, as they are in its files.
        #[derive(Clone, Copy, Debug)]
        pub struct Texts {
            pub(super) schema: &'static str,
            /// The claim in a transaction of the work, if it is another statement than `claim`.
            pub(super) open: Option<&'static str>,
            $(pub(super) $name: &'static str,)*
        }

        /// The statements of a store, with the name of its table in them.
        #[derive(Debug)]
        pub(super) struct Statements {
            $(pub(super) $name: Statement,)*
            pub(super) enter: Enter,
        }

        impl Statements {
            pub(super) fn new(texts: &Texts, dialect: &Dialect, table: &Table) -> Self {
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
pub(super) struct Enter {
    pub(super) open: Statement,
    pub(super) begin: Statement,
    pub(super) take: Statement,
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
    remove: writes,
    stats: reads,
}

/// Includes the files of a folder.
macro_rules! texts {
    ($folder:literal) => {
        texts!($folder: claim, look, begin, take, renew, settle, settle_as, release, release_as, undo_first, undo, claim_in,
            issue, reissue, record_failure, runs, inspect, list, list_state, list_abandoned, forget, expired, remove, stats)
    };
    ($folder:literal: $($name:ident),*) => {
        $crate::store::sql::statements::Texts {
            schema: include_str!(concat!($folder, "/schema.sql")),
            open: None,
            $($name: include_str!(concat!($folder, "/", stringify!($name), ".sql")),)*
        }
    };
}
pub(super) use texts;
