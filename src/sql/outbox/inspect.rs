use std::time::Duration;

use crate::{
    sql::{
        driver::{SqlDatabase, Value},
        statement::BATCH,
        store::{retry::unreadable, values::time},
    },
    value::StoreError,
};

use super::{Outbox, StagedMessage, batch::read_all, table::number};

/// The messages that wait in an outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxStats {
    /// How many messages are staged and not sent.
    pub unsent: u64,
    /// How many of them have failed at least once.
    pub failing: u64,
    /// How long the oldest of them has waited.
    pub oldest: Option<Duration>,
}

/// The operations for operators.
impl<D: SqlDatabase> Outbox<D> {
    /// Returns how many messages wait, and since when. It reads all unsent messages.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn stats(&self) -> Result<OutboxStats, StoreError> {
        let rows = self.store.rows(&self.statements.stats, &[]).await?;
        let Some(row) = rows.first() else { return Ok(OutboxStats::default()) };
        let int = |at| D::int(row, at).map_err(unreadable::<D>);
        let count = |at| Ok::<_, StoreError>(int(at)?.unwrap_or(0).unsigned_abs());
        let oldest = int(2)?.map(|age| Duration::from_millis(age.try_into().unwrap_or(0)));
        Ok(OutboxStats { unsent: count(0)?, failing: count(1)?, oldest })
    }

    /// Returns messages that were staged at least `age` ago and are not sent, the first staged first, at most `limit`.
    ///
    /// It is for reconciliation: a message that stays here holds up its key.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn unsent(&self, age: Duration, limit: usize) -> Result<Vec<StagedMessage>, StoreError> {
        self.unsent_after(0, age, limit).await
    }

    /// Returns further messages as [`unsent`](Self::unsent) does: those that were staged after the one at this
    /// [position](StagedMessage::position).
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn unsent_after(
        &self,
        position: i64,
        age: Duration,
        limit: usize,
    ) -> Result<Vec<StagedMessage>, StoreError> {
        let values = [time(age), Value::Int(position), number(limit)];
        read_all::<D>(&self.store.rows(&self.statements.unsent, &values).await?)
    }

    /// Makes an unsent message due now, by its id, if a relay has put it off after it failed. Returns whether there is
    /// such a message.
    ///
    /// A message that a relay is sending at the moment stays as it is, and `false` is returned. A message that waits
    /// for an earlier one of its key goes on waiting.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn retry(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.store.change(&self.statements.retry, &[Value::Text(Some(id))]).await? > 0)
    }

    /// Removes an unsent message that can never be sent, by its id, so that its key goes on. Returns whether it was
    /// removed.
    ///
    /// A message that a relay is sending at the moment stays.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached.
    pub async fn discard(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.store.change(&self.statements.discard, &[Value::Text(Some(id))]).await? > 0)
    }

    /// Removes messages that were sent at least `age` ago, at most `limit`, in small batches. Returns how many.
    ///
    /// A [running](super::Relay::run) relay does so by itself.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached. What was removed before stays
    /// removed.
    pub async fn purge(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        let mut removed = 0;
        while removed < limit {
            let wanted = BATCH.min(limit - removed);
            let rows = self.store.rows(&self.statements.old, &[time(age), number(wanted)]).await?;
            let seqs: Result<Vec<_>, _> = rows.iter().map(|row| D::int(row, 0)).collect();
            let mut seqs: Vec<_> = seqs.map_err(unreadable::<D>)?.into_iter().flatten().collect();
            // Two concurrent purges lock in the same order.
            seqs.sort_unstable();
            let Some(last) = seqs.last() else { break };
            let values: Vec<_> =
                seqs.iter().chain(std::iter::repeat(last)).take(BATCH).map(|&seq| Value::Int(seq)).collect();
            let gone = self.store.change(&self.statements.remove, &values).await?;
            removed = removed.saturating_add(usize::try_from(gone).unwrap_or(usize::MAX));
            if seqs.len() < wanted {
                break;
            }
        }
        Ok(removed as u64)
    }
}
