use std::time::Duration;

use crate::{
    sql::{
        driver::{SqlDatabase, Value},
        store::{
            retry::unreadable,
            values::{bytes, time},
        },
    },
    value::{Claimant, StoreError},
};

use super::{Outbox, StagedMessage, table::number};

/// How often heads are looked for if others lease them at the same moment.
const LOOKS: usize = 4;

/// The operations of a relay.
impl<D: SqlDatabase> Outbox<D> {
    /// Leases messages that may be sent now, at most one of each key: the first that is unsent. Messages that were
    /// never tried come first, then those that have been due for the longest. Messages of the topics in `but` are
    /// skipped.
    ///
    /// If the database can skip locked rows, this is one statement. Otherwise the heads are read first, as of one
    /// moment, and then taken one by one if they are still as they were seen: a locking read of MariaDB would see the
    /// messages and those before them at different moments.
    pub(crate) async fn lease(
        &self,
        limit: usize,
        but: &[&str],
        lease: Duration,
    ) -> Result<Vec<StagedMessage>, StoreError> {
        let but = lines(but);
        let but = Value::Text(Some(&but));
        let relay = Claimant::random().to_bytes();
        if self.statements.heads_lease {
            let values = [but, number(limit), bytes(&relay), time(lease)];
            let rows = self.store.rows(&self.statements.heads, &values).await?;
            let mut leased = read_all::<D>(&rows)?;
            leased.sort_unstable_by_key(|message| (message.attempt > 1, message.seq));
            for message in &mut leased {
                message.relay = relay;
            }
            return Ok(leased);
        }
        let mut leased = Vec::new();
        for _ in 0..LOOKS {
            let rows = self.store.rows(&self.statements.heads, &[but, number(limit)]).await?;
            for head in read_all::<D>(&rows)? {
                leased.extend(self.take(head, relay, lease).await?);
            }
            if !leased.is_empty() || rows.is_empty() {
                break;
            }
        }
        Ok(leased)
    }

    /// Leases the first unsent message with the key of one that was sent, without a search among all others. The
    /// message has to be of the same topic.
    pub(crate) async fn lease_next(
        &self,
        sent: &StagedMessage,
        lease: Duration,
    ) -> Result<Option<StagedMessage>, StoreError> {
        let Some(key) = sent.message.key.as_deref() else { return Ok(None) };
        let rows = self.store.rows(&self.statements.first, &[Value::Text(Some(key))]).await?;
        match read_all::<D>(&rows)?.pop() {
            Some(head) if head.message.topic == sent.message.topic => {
                self.take(head, Claimant::random().to_bytes(), lease).await
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Leases the head of a key, if it is as it was seen and may be sent now.
    async fn take(
        &self,
        mut head: StagedMessage,
        relay: [u8; 16],
        lease: Duration,
    ) -> Result<Option<StagedMessage>, StoreError> {
        let values = [bytes(&relay), time(lease), Value::Int(head.seq), Value::Int(head.attempt.into())];
        if self.store.change(&self.statements.lease, &values).await? == 0 {
            return Ok(None);
        }
        head.attempt = head.attempt.saturating_add(1);
        head.relay = relay;
        Ok(Some(head))
    }

    /// Marks a message as sent, unless another relay has taken it over.
    pub(crate) async fn sent(&self, message: &StagedMessage) -> Result<bool, StoreError> {
        let values = [Value::Int(message.seq), bytes(&message.relay)];
        Ok(self.store.change(&self.statements.sent, &values).await? > 0)
    }

    /// Gives a message back, to be sent after a pause, unless another relay has taken it over.
    pub(crate) async fn put_off(&self, message: &StagedMessage, pause: Duration) -> Result<bool, StoreError> {
        let values = [time(pause), Value::Int(message.seq), bytes(&message.relay)];
        Ok(self.store.change(&self.statements.failed, &values).await? > 0)
    }

    /// Waits for [`wake`](Self::wake).
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

/// Returns one line for each topic; no topic contains a line break. So a database can search for a line, and the
/// statement needs no list of parameters of varying length.
fn lines(topics: &[&str]) -> String {
    topics.iter().fold(String::from("\n"), |lines, topic| lines + topic + "\n")
}

pub(crate) fn read_all<D: SqlDatabase>(rows: &[D::Row]) -> Result<Vec<StagedMessage>, StoreError> {
    rows.iter().map(StagedMessage::read::<D>).collect::<Result<_, _>>().map_err(unreadable::<D>)
}
