//! How a statement gets its answer.
//!
//! A deadlock's victim and a serialization failure have changed nothing and are sent again. A statement whose
//! connection broke may have taken effect; it is sent again as well, since the claimant in the row makes a second
//! effect impossible, and the error of the last try says that it may have. Other errors are the caller's.
//!
//! A statement that is too long for MariaDB breaks the connection, often before the reason is read. So if a connection
//! breaks under a long statement, the limit is asked for, and the error becomes `TooLarge`.

use std::time::Duration;

use sqlx::{SqlStr, pool::PoolConnection};
use tokio::time::{Instant, sleep};

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, StatementResult, Value},
        error::{StatementError, too_large},
        statement::Statement,
    },
    value::{StoreError, doubled, jitter},
};

use super::{SqlShared, connection_cache::AtHand, record_row::RecordRow};

/// How often a statement is sent at most if it loses against others, or if its connection breaks.
const TRIES: u32 = 10;

/// After this long a statement is not sent again. MariaDB waits 50 seconds for a lock before it returns an error.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause after a first failure; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Reads the row of a record.
pub(in crate::sql) fn read<D: SqlDatabase>(row: &D::Row) -> Result<RecordRow, StoreError> {
    RecordRow::read::<D>(row).map_err(unreadable::<D>)
}

/// Converts the error of a row that cannot be read.
pub(in crate::sql) fn unreadable<D: SqlDatabase>(error: sqlx::Error) -> StoreError {
    StatementError::Failed(error).into_error::<D>(false)
}

/// Statements with fewer bytes are not checked: a database whose limit suffices for the store's other statements
/// accepts them.
const SUSPECT: u64 = 64 * 1024;

/// Room for the rest of a statement, beside its bytes.
const BESIDE: u64 = 16 * 1024;

/// Returns how many bytes the values have.
pub(in crate::sql) fn bytes_in(values: &[Value<'_>]) -> u64 {
    let bytes = values.iter().map(|value| match value {
        Value::Bytes(Some(bytes)) => bytes.len() as u64,
        Value::Text(Some(text)) => text.len() as u64,
        _ => 0,
    });
    bytes.sum()
}

/// Returns whether a statement with so many bytes can be sent.
pub(in crate::sql) async fn fits<D: SqlDatabase>(connection: &mut D::Connection, bytes: u64) -> sqlx::Result<bool> {
    let Some(limit) = D::PACKET_LIMIT.filter(|_| bytes >= SUSPECT) else { return Ok(bytes <= D::MOST_BYTES) };
    let statement = Statement { sql: SqlStr::from_static(limit), reads: true };
    let answer = D::ask(connection, &statement, &[]).await?;
    let limit = answer.rows.first().map(|row| D::int(row, 0)).transpose()?.flatten();
    Ok(limit.is_none_or(|limit| bytes.saturating_add(BESIDE) <= limit.unsigned_abs()))
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Returns the rows of a statement.
    pub(in crate::sql) async fn rows(
        &self,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<D::Row>, StoreError> {
        Ok(self.ask(statement, values).await?.rows)
    }

    /// Executes a statement, and returns how many rows it has changed.
    pub(in crate::sql) async fn change(&self, statement: &Statement, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let _turn = match &self.shared.writing {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        Ok(self.ask(statement, values).await?.count)
    }

    /// Sends a statement until it has an answer. Every statement may be sent again: the record names who has claimed,
    /// settled or released.
    async fn ask(&self, statement: &Statement, values: &[Value<'_>]) -> Result<StatementResult<D::Row>, StoreError> {
        self.begin_purging();
        let (began, mut failures, mut sent, bytes) = (Instant::now(), 0, false, bytes_in(values));
        if bytes > D::MOST_BYTES {
            return Err(too_large::<D>(bytes));
        }
        loop {
            let error = match self.send(statement, values).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let cut = error.is_disconnect::<D>();
            let over = failures == TRIES || began.elapsed() > PATIENCE;
            if over || !(cut || error.is_conflict::<D>()) {
                return Err(error.into_error::<D>(sent));
            }
            if cut && !self.fits(bytes).await? {
                return Err(too_large::<D>(bytes));
            }
            if cut {
                // The statement may have taken effect on the connection that broke.
                sent |= error.is_sent();
                self.shared.held.give_up();
            }
            // If one connection is cut, often all of them are, which takes a moment in which the next one still
            // answers.
            sleep(jitter(doubled(PAUSE, failures - 1, LONGEST_PAUSE))).await;
        }
    }

    /// Returns whether the database may have read a statement with so many bytes: if a statement is too long, MariaDB
    /// cuts the connection, often before the reason is read.
    async fn fits(&self, bytes: u64) -> Result<bool, StoreError> {
        if D::PACKET_LIMIT.is_none() || bytes < SUSPECT {
            return Ok(true);
        }
        let mut connection = self.some_connection().await?;
        Ok(fits::<D>(&mut connection, bytes).await.unwrap_or(true))
    }

    /// Sends a statement once, on a cached connection if there is one.
    async fn send(
        &self,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<StatementResult<D::Row>, StatementError> {
        let SqlShared { pool, held, .. } = &*self.shared;
        let _turn = held.turn(pool).await.map_err(StatementError::NotSent)?;
        let mut connection = match held.take() {
            Some(connection) => connection,
            None => AtHand::new(self.connection().await?),
        };
        // If this fails or is dropped, the pool handles the connection.
        let answer = D::ask(&mut connection.connection, statement, values).await.map_err(StatementError::Failed)?;
        held.keep(pool, connection);
        Ok(answer)
    }

    /// Returns a connection at hand, or one of the pool, for a statement that is not sent again.
    pub(in crate::sql) async fn some_connection(&self) -> Result<PoolConnection<D>, StoreError> {
        match self.shared.held.take() {
            Some(at_hand) => Ok(at_hand.connection),
            None => self.connection().await.map_err(|error| error.into_error::<D>(false)),
        }
    }

    /// Takes a connection out of the pool.
    pub(in crate::sql) async fn connection(&self) -> Result<PoolConnection<D>, StatementError> {
        self.shared.pool.acquire().await.map_err(StatementError::NotSent)
    }
}
