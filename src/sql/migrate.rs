//! Creating what the table lacks.
//!
//! The catalogue is read without locks. A change takes a lock that others would queue behind, so it waits for it only
//! for a moment and tries again later. Columns are only added, with a default, so that processes of an earlier version
//! go on writing rows.

use std::{collections::HashSet, time::Duration};

use sqlx::{AssertSqlSafe, SqlSafeStr};
use tokio::time::{Instant, sleep};

use crate::value::{StoreError, StoreErrorKind, jitter};

use super::{
    SqlStore,
    driver::SqlDatabase,
    error::StatementError,
    schema::{Missing, Schema},
    statement::Statement,
    store::retry::unreadable,
    table::Table,
};

/// How long a change is tried if others hold its lock, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);

/// Transactions that overlap can hold the lock without a gap. After this time a try waits for it, so that those that begin
/// meanwhile queue behind it, for up to a second.
const GAPS_EXPECTED_FOR: Duration = Duration::from_secs(3);

/// How often a change is tried if it fails for another reason: another process may make it at the same moment.
const TRIES: usize = 3;

impl<D: SqlDatabase> SqlStore<D> {
    /// Creates what a table lacks, one change after the other, and changes nothing if the table is complete.
    ///
    /// What exists is read from the catalogue, without waiting for locks.
    pub(crate) async fn bring_up(&self, table: &Table, text: &str) -> Result<(), StoreError> {
        let (schema, began, mut failures, mut last) = (Schema::parse(text), Instant::now(), 0, None);
        while let Some(missing) = self.missing(table, &schema).await? {
            if last.as_ref() == Some(&missing) {
                let message = format!("{}: {table} is not where it was created: look at the search path", D::NAME);
                return Err(StoreError::new(StoreErrorKind::Misconfigured, message));
            }
            match self.alter(table, &missing, began.elapsed() > GAPS_EXPECTED_FOR).await {
                Ok(()) => last = Some(missing),
                Err(error) => {
                    failures += 1;
                    if failures >= TRIES && !(error.is_temporary() && began.elapsed() < PATIENCE) {
                        return Err(error);
                    }
                    sleep(jitter(PAUSE)).await;
                }
            }
        }
        Ok(())
    }

    /// Returns what a table lacks, in words and in the order in which it would be created. Nothing is changed.
    pub(crate) async fn pending(&self, table: &Table, text: &str) -> Result<Vec<String>, StoreError> {
        let (columns, indexes) = self.parts(table).await?;
        let missing =
            Schema::parse(text).all_missing(columns, indexes).map_err(|column| foreign::<D>(table, &column))?;
        Ok(missing.iter().map(|missing| missing.describe(table)).collect())
    }

    /// Returns the columns of a table that the text does not have.
    pub(crate) async fn unknown(&self, table: &Table, text: &str) -> Result<Vec<String>, StoreError> {
        Ok(Schema::parse(text).unknown(self.parts(table).await?.0))
    }

    /// Returns what to create next, by the catalogue.
    async fn missing(&self, table: &Table, schema: &Schema) -> Result<Option<Missing>, StoreError> {
        let (columns, indexes) = self.parts(table).await?;
        schema.missing(&columns, &indexes).map_err(|column| foreign::<D>(table, &column))
    }

    /// Reads the names of a table's columns and indexes from the catalogue.
    async fn parts(&self, table: &Table) -> Result<(HashSet<String>, HashSet<String>), StoreError> {
        let text = D::catalogue(table);
        let statement = Statement { sql: AssertSqlSafe(text).into_sql_str(), reads: true };
        let (mut columns, mut indexes) = (HashSet::new(), HashSet::new());
        for row in self.rows(&statement, &[]).await? {
            let read = |at| D::text(&row, at).map(Option::unwrap_or_default).map_err(unreadable::<D>);
            if read(0)? == "column" {
                columns.insert(read(1)?)
            } else {
                indexes.insert(read(1)?)
            };
        }
        Ok((columns, indexes))
    }

    /// Makes one change.
    async fn alter(&self, table: &Table, missing: &Missing, waits: bool) -> Result<(), StoreError> {
        let _turn = match &self.shared.writing {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        let failed = |error| StatementError::Failed(error).into_error::<D>(false);
        let _seat = self.shared.held.turn(&self.shared.pool).await.map_err(failed)?;
        let mut connection = self.some_connection().await?;
        let text = D::change_text(&table.quoted(D::DIALECT.quote), missing, waits);
        let changed = D::run(&mut connection, text).await;
        changed.map_err(|error| {
            // A transaction may be left open.
            connection.close_on_drop();
            failed(error)
        })
    }
}

/// Returns the error of a table that lacks a column which cannot be added.
fn foreign<D: SqlDatabase>(table: &Table, column: &str) -> StoreError {
    let message = format!("{}: the table {table} has no column `{column}`: it is not that of `schema()`", D::NAME);
    StoreError::new(StoreErrorKind::Misconfigured, message).without_effect()
}
