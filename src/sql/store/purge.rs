//! Removing what has expired.
//!
//! Expiry is checked by every read, so nothing depends on this. One process purges a table at a time: the others find
//! its lock taken and come back later. Rows are found by the index and removed by their keys in small batches, in the
//! order of the keys, so that no lock is held for long and two purges cannot deadlock.
//!
//! The turn ends with its connection. So a process that dies, or a future that is dropped half-way, blocks no other
//! one.

use std::{
    iter::repeat,
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
    time::Duration,
};

use sqlx::{AssertSqlSafe, SqlSafeStr, pool::PoolConnection};
use tokio::time::{Instant, sleep};

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
        error::StatementError,
        statement::{BATCH, Statement},
        table::Table,
    },
    value::{Event, StoreError, jitter},
};

use super::{Purging, SqlShared, namespace::Namespace, retry::unreadable, values::bytes};

/// How many records one round removes before a pause.
const AT_ONCE: usize = 1000;

/// The pause between two rounds if there are more records, so that a large backlog does not crowd out requests.
const BREATH: Duration = Duration::from_millis(100);

/// How many expired records wait for their removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// Those of the store's namespace.
    pub namespace: u64,
    /// Those of all namespaces.
    pub all: u64,
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Begins to purge in the background, unless that has begun already or is switched off.
    pub(in crate::sql) fn begin_purging(&self) {
        let Purging { every: Some(every), began } = &self.shared.purging else { return };
        if !began.load(Relaxed) && !began.swap(true, Relaxed) {
            tokio::spawn(keep_purging(Arc::downgrade(&self.shared), *every));
        }
    }

    /// Removes expired records, if it is this process's turn; returns whether there may be more.
    async fn purge_in_turn(&self) -> Result<Option<usize>, StoreError> {
        let failed = |error| StatementError::Failed(error).into_error::<D>(false);
        let SqlShared { pool, held, writing, .. } = &*self.shared;
        let _turn = match writing {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        let _seat = held.turn(pool).await.map_err(failed)?;
        let mut connection = self.some_connection().await?;
        let Some(turn) = D::purge_lock(self.shared.table.lock(b"purge")) else {
            return self.sweep(&mut connection).await.map(Some).map_err(failed);
        };
        // If this is dropped half-way, or fails, the turn ends with its connection.
        let mut connection = Closing(Some(connection));
        let Some(on) = &mut connection.0 else { return Ok(None) };
        if let Some(begin) = turn.begin {
            D::run(on, begin.to_owned()).await.map_err(failed)?;
        }
        let take = Statement { sql: AssertSqlSafe(turn.take).into_sql_str(), reads: true };
        let answer = D::ask(on, &take, &[]).await.map_err(failed)?;
        let is_ours = match answer.rows.first() {
            Some(row) => D::int(row, 0).map_err(unreadable::<D>)? == Some(1),
            None => false,
        };
        let removed = if is_ours { Some(self.sweep(on).await.map_err(failed)?) } else { None };
        D::run(on, turn.end).await.map_err(failed)?;
        drop(connection.0.take());
        Ok(removed)
    }

    /// Removes the records of one round; returns whether the round was full.
    async fn sweep(&self, connection: &mut D::Connection) -> sqlx::Result<usize> {
        let statements = &self.shared.statements;
        let mut removed = 0;
        while removed < AT_ONCE {
            let rows = D::ask(connection, &statements.expired, &[number(BATCH)]).await?.rows;
            let ids = ids_of::<D>(&rows)?;
            if ids.is_empty() {
                break;
            }
            let gone = D::ask(connection, &statements.remove, &batch(&ids)).await?.count;
            if gone == 0 {
                break;
            }
            removed += usize::try_from(gone).unwrap_or(AT_ONCE);
        }
        Ok(removed)
    }

    /// Removes up to `limit` expired records of this namespace, in small batches, and returns how many.
    /// [`purge`](crate::store::StoreAdmin::purge) removes those of all namespaces.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached. What was removed before stays removed.
    pub async fn purge_namespace(&self, limit: usize) -> Result<u64, StoreError> {
        self.remove_expired(limit, true).await
    }

    /// Counts the expired records that have not been removed yet. It reads all of them.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn expired(&self) -> Result<Expired, StoreError> {
        let [before, behind] = self.space.bounds();
        let rows = self.rows(&self.shared.statements.count_expired, &[bytes(&before), bytes(&behind)]).await?;
        let Some(row) = rows.first() else { return Ok(Expired::default()) };
        let count = |at| Ok::<_, StoreError>(D::int(row, at).map_err(unreadable::<D>)?.unwrap_or(0).unsigned_abs());
        Ok(Expired { namespace: count(0)?, all: count(1)? })
    }

    /// Removes up to `limit` expired records, of this namespace or of all, without waiting for a turn.
    pub(in crate::sql) async fn remove_expired(&self, limit: usize, within: bool) -> Result<u64, StoreError> {
        let (statements, [before, behind]) = (&self.shared.statements, self.space.bounds());
        let mut removed = 0;
        while removed < limit {
            let wanted = BATCH.min(limit - removed);
            let rows = if within {
                self.rows(&statements.expired_in, &[bytes(&before), bytes(&behind), number(wanted)]).await?
            } else {
                self.rows(&statements.expired, &[number(wanted)]).await?
            };
            let ids = ids_of::<D>(&rows).map_err(unreadable::<D>)?;
            if ids.is_empty() {
                break;
            }
            let gone = self.change(&statements.remove, &batch(&ids)).await?;
            removed = removed.saturating_add(usize::try_from(gone).unwrap_or(usize::MAX));
            if gone == 0 {
                break;
            }
        }
        Ok(removed as u64)
    }
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Reports a round of a purge that began at `start`. `None` removed: it was another process's turn.
    pub(in crate::sql) fn report_purge(&self, table: &Table, purged: Result<Option<u64>, &StoreError>, start: Instant) {
        #[cfg(feature = "tracing")]
        if let Err(error) = purged {
            tracing::warn!(%table, error = error as &dyn std::error::Error, "what has expired could not be removed");
        }
        if self.shared.observers.is_empty() {
            return;
        }
        let (table, took) = (&*table.to_string(), start.elapsed());
        match purged {
            Ok(Some(removed)) => self.shared.observers.report(&Event::Purged { table, removed, took }),
            Ok(None) => {}
            Err(error) => self.shared.observers.report(&Event::PurgeFailed { table, error }),
        }
    }
}

/// Ends when the store is dropped or its pool closed. An error ends a round.
async fn keep_purging<D: SqlDatabase>(shared: Weak<SqlShared<D>>, every: Duration) {
    loop {
        sleep(every / 2 + jitter(every)).await;
        loop {
            let Some(shared) = shared.upgrade().filter(|shared| !shared.pool.is_closed()) else { return };
            let store = SqlStore { shared, space: Namespace::default() };
            let start = Instant::now();
            let purged = store.purge_in_turn().await;
            store.report_purge(&store.shared.table, purged.as_ref().map(|removed| removed.map(|n| n as u64)), start);
            if purged.ok().flatten().is_none_or(|removed| removed < AT_ONCE) {
                break;
            }
            drop(store);
            sleep(BREATH).await;
        }
    }
}

/// A connection that is closed when this is dropped.
struct Closing<D: SqlDatabase>(Option<PoolConnection<D>>);

impl<D: SqlDatabase> Drop for Closing<D> {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.close_on_drop();
        }
    }
}

/// Returns the ids that were found, sorted, so that two concurrent purges lock them in the same order.
fn ids_of<D: SqlDatabase>(rows: &[D::Row]) -> sqlx::Result<Vec<Vec<u8>>> {
    let ids: sqlx::Result<Vec<_>> = rows.iter().map(|row| D::bytes(row, 0)).collect();
    let mut ids: Vec<_> = ids?.into_iter().flatten().collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Returns the values of a batch, which always has the same length.
fn batch(ids: &[Vec<u8>]) -> Vec<Value<'_>> {
    ids.iter().chain(ids.last().into_iter().flat_map(repeat)).take(BATCH).map(|id| bytes(id)).collect()
}

fn number(number: usize) -> Value<'static> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
