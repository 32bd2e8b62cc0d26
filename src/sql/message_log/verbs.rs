use std::{
    iter::repeat,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    sql::{
        driver::{SqlDatabase, Value},
        statement::BATCH,
        store::{
            retry::unreadable,
            values::{bytes, time},
        },
    },
    value::{StoreError, jitter},
};

use super::{
    logged::{LoggedMessage, MessageFilter},
    message::{IncomingMessage, route_column},
    table::MessageLog,
};

/// The most messages of one page, whatever the requested limit is.
const LONGEST_PAGE: usize = 1000;

/// How often old messages are removed, how many at once, and the pause between two rounds if there are more.
const EVERY: Duration = Duration::from_secs(60);
const AT_ONCE: usize = 1000;
const BREATH: Duration = Duration::from_millis(100);

impl<D: SqlDatabase> MessageLog<D> {
    /// Writes a message, which is committed when the call returns. A message whose id is there already changes nothing.
    ///
    /// Of the body, no more than [`body_limit`](Self::body_limit) is kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn write(&self, message: &IncomingMessage) -> Result<(), StoreError> {
        self.begin_purging();
        let (body, is_cut) = message.body_within(self.body_limit);
        let headers = message.header_lines();
        let text = |text| Value::Text(Some(text));
        let values = [
            text(&message.id),
            text(route_column(&message.route)),
            Value::Bytes(message.key_digest.as_ref().map(|digest| &digest[..])),
            text(message.method_column()),
            text(&message.path),
            text(&headers),
            bytes(body),
            Value::Flag(is_cut),
        ];
        self.store.change(&self.statements.write, &values).await.map(drop)
    }

    /// Notes the status of the answer to a message, by its id. Returns whether it was noted: a message has one answer,
    /// and one that is not there has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn answered(&self, id: &str, status: u16) -> Result<bool, StoreError> {
        let values = [Value::Int(status.into()), Value::Text(Some(id))];
        Ok(self.store.change(&self.statements.answered, &values).await? > 0)
    }

    /// Returns a message by its id.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn get(&self, id: &str) -> Result<Option<LoggedMessage>, StoreError> {
        let rows = self.store.rows(&self.statements.get, &[Value::Text(Some(id))]).await?;
        rows.first().map(LoggedMessage::read::<D>).transpose().map_err(unreadable::<D>)
    }

    /// Returns the messages that the filter includes, in the order of their arrival: at most `limit`, and at most a
    /// thousand.
    ///
    /// The next page begins [after](MessageFilter::after) the last one of this page.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn list(&self, filter: &MessageFilter, limit: usize) -> Result<Vec<LoggedMessage>, StoreError> {
        let MessageFilter { key, route, from, until, after: (arrived, seq) } = filter;
        let route = Value::Text(Some(route.as_deref().map_or("", route_column)));
        // What arrived at the same millisecond as the last one is distinguished by its number.
        let from = Value::Int((*from).max(*arrived));
        let range = [from, Value::Int(*arrived), Value::Int(*seq), Value::Int(*until), route, route];
        let limit = Value::Int(i64::try_from(limit.clamp(1, LONGEST_PAGE)).unwrap_or(1));
        let rows = match key {
            Some(key) => {
                let values = [&[bytes(key)][..], &range, &[limit]].concat();
                self.store.rows(&self.statements.list_key, &values).await?
            }
            None => self.store.rows(&self.statements.list, &[&range[..], &[limit]].concat()).await?,
        };
        rows.iter().map(LoggedMessage::read::<D>).collect::<Result<_, _>>().map_err(unreadable::<D>)
    }

    /// Removes messages that are older than the [retention](Self::retention), at most `limit`, in small batches.
    /// Returns how many.
    ///
    /// A log that is written to does so by itself, once a minute in each process.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached. What was removed before stays removed.
    pub async fn purge(&self, limit: usize) -> Result<u64, StoreError> {
        let mut removed = 0;
        while removed < limit {
            let wanted = BATCH.min(limit - removed);
            let number = Value::Int(i64::try_from(wanted).unwrap_or(1));
            let rows = self.store.rows(&self.statements.old, &[time(self.retention), number]).await?;
            let seqs: Result<Vec<_>, _> = rows.iter().map(|row| D::int(row, 0)).collect();
            let mut seqs: Vec<_> = seqs.map_err(unreadable::<D>)?.into_iter().flatten().collect();
            // Two concurrent purges lock in the same order.
            seqs.sort_unstable();
            let Some(last) = seqs.last() else { break };
            let values: Vec<_> = seqs.iter().chain(repeat(last)).take(BATCH).map(|&seq| Value::Int(seq)).collect();
            let gone = self.store.change(&self.statements.remove, &values).await?;
            removed = removed.saturating_add(usize::try_from(gone).unwrap_or(usize::MAX));
            if seqs.len() < wanted || gone == 0 {
                break;
            }
        }
        Ok(removed as u64)
    }

    /// Begins to remove old messages in the background, unless that has begun already or is switched off.
    fn begin_purging(&self) {
        if self.purges && !self.purging.load(Relaxed) && !self.purging.swap(true, Relaxed) {
            let alive = Arc::downgrade(&self.purging);
            // The task has a place of its own, so that it does not keep itself alive.
            let log = Self { purging: Arc::default(), purges: false, ..self.clone() };
            tokio::spawn(keep_purging(log, alive));
        }
    }
}

/// Ends when the log is dropped or its pool is closed. An error ends a round.
async fn keep_purging<D: SqlDatabase>(log: MessageLog<D>, alive: Weak<AtomicBool>) {
    loop {
        sleep(EVERY / 2 + jitter(EVERY)).await;
        while alive.strong_count() > 0 && !log.store.pool().is_closed() {
            if log.purge(AT_ONCE).await.unwrap_or(0) < AT_ONCE as u64 {
                break;
            }
            sleep(BREATH).await;
        }
        if alive.strong_count() == 0 || log.store.pool().is_closed() {
            return;
        }
    }
}
