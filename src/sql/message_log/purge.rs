use std::{
    iter::repeat,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
        statement::BATCH,
        store::{SqlShared, namespace::Namespace, retry::unreadable, values::time},
        table::Table,
    },
    value::{StoreError, jitter},
};

use super::{statements::MessageLogStatements, table::MessageLog};

/// How many messages one round removes before a pause, so that a large backlog does not crowd out requests.
const AT_ONCE: usize = 1000;
const BREATH: Duration = Duration::from_millis(100);

impl<D: SqlDatabase> MessageLog<D> {
    /// Removes messages that are older than the [retention](Self::retention), at most `limit`, in small batches.
    /// Returns how many.
    ///
    /// A log that is written to does so by itself; see [`purge_every`](Self::purge_every).
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached. What was removed before stays removed.
    pub async fn purge(&self, limit: usize) -> Result<u64, StoreError> {
        remove_old(&self.store, &self.statements, self.retention, limit).await
    }

    /// Begins to remove old messages in the background, unless that has begun already or is switched off.
    pub(super) fn begin_purging(&self) {
        let Some(every) = self.purge_every else { return };
        if !self.purging.load(Relaxed) && !self.purging.swap(true, Relaxed) {
            tokio::spawn(keep_purging(Purge {
                alive: Arc::downgrade(&self.purging),
                shared: Arc::downgrade(&self.store.shared),
                statements: Arc::clone(&self.statements),
                table: self.table.clone(),
                retention: self.retention,
                every,
            }));
        }
    }
}

/// What the background task works with. It keeps neither the log nor its pool alive.
struct Purge<D: SqlDatabase> {
    alive: Weak<AtomicBool>,
    shared: Weak<SqlShared<D>>,
    statements: Arc<MessageLogStatements>,
    table: Table,
    retention: Duration,
    every: Duration,
}

/// Ends when the log is dropped or its pool is closed. An error ends a round.
async fn keep_purging<D: SqlDatabase>(purge: Purge<D>) {
    loop {
        sleep(purge.every / 2 + jitter(purge.every)).await;
        loop {
            let shared = purge.shared.upgrade().filter(|shared| !shared.pool.is_closed());
            let Some(shared) = shared.filter(|_| purge.alive.strong_count() > 0) else { return };
            let store = SqlStore { shared, space: Namespace::default() };
            let start = Instant::now();
            let removed = remove_old(&store, &purge.statements, purge.retention, AT_ONCE).await;
            store.report_purge(&purge.table, removed.as_ref().map(|removed| Some(*removed)), start);
            if removed.unwrap_or(0) < AT_ONCE as u64 {
                break;
            }
            drop(store);
            sleep(BREATH).await;
        }
    }
}

/// Removes up to `limit` messages that are older than `retention`.
async fn remove_old<D: SqlDatabase>(
    store: &SqlStore<D>,
    statements: &MessageLogStatements,
    retention: Duration,
    limit: usize,
) -> Result<u64, StoreError> {
    let mut removed = 0;
    while removed < limit {
        let wanted = BATCH.min(limit - removed);
        let number = Value::Int(i64::try_from(wanted).unwrap_or(1));
        let rows = store.rows(&statements.old, &[time(retention), number]).await?;
        let seqs: Result<Vec<_>, _> = rows.iter().map(|row| D::int(row, 0)).collect();
        let mut seqs: Vec<_> = seqs.map_err(unreadable::<D>)?.into_iter().flatten().collect();
        // Two concurrent purges lock in the same order.
        seqs.sort_unstable();
        let Some(last) = seqs.last() else { break };
        let values: Vec<_> = seqs.iter().chain(repeat(last)).take(BATCH).map(|&seq| Value::Int(seq)).collect();
        let gone = store.change(&statements.remove, &values).await?;
        removed = removed.saturating_add(usize::try_from(gone).unwrap_or(usize::MAX));
        if seqs.len() < wanted || gone == 0 {
            break;
        }
    }
    Ok(removed as u64)
}
