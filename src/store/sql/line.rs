use std::time::Duration;

use sqlx::pool::PoolConnection;
use tokio::time::{Instant, sleep};

use crate::value::StoreError;

use super::{
    Shared, SqlStore,
    driver::{Answer, Driver, Value},
    error::Trouble,
    statements::Statement,
    stored::Row,
    waiting::jitter,
};

/// How often a statement is sent that loses against others, or whose connection breaks.
const TRIES: u32 = 10;

/// After this long it is not sent again. MariaDB waits 50 seconds for a lock before it says so.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause after a first failure; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

pub(super) fn read<D: Driver>(row: &D::Row) -> Result<Row, StoreError> {
    Row::read::<D>(row).map_err(unreadable::<D>)
}

pub(super) fn unreadable<D: Driver>(error: sqlx::Error) -> StoreError {
    Trouble::Failed(error).into_error::<D>(false)
}

impl<D: Driver> SqlStore<D> {
    /// The rows that a statement gives.
    pub(super) async fn rows(&self, statement: &Statement, values: &[Value<'_>]) -> Result<Vec<D::Row>, StoreError> {
        Ok(self.ask(statement, values).await?.rows)
    }

    /// How many rows a statement has changed.
    pub(super) async fn change(&self, statement: &Statement, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let _turn = match &self.shared.writing {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        Ok(self.ask(statement, values).await?.count)
    }

    /// Sends a statement until it has an answer. Each of them may be sent again: who has claimed, settled or released
    /// is in the record.
    async fn ask(&self, statement: &Statement, values: &[Value<'_>]) -> Result<Answer<D::Row>, StoreError> {
        let (began, mut failures, mut sent) = (Instant::now(), 0, false);
        loop {
            let trouble = match self.send(statement, values).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            failures += 1;
            let cut = trouble.is_cut::<D>();
            let over = failures == TRIES || began.elapsed() > PATIENCE;
            if over || !(cut || trouble.is_victim::<D>()) {
                return Err(trouble.into_error::<D>(sent));
            }
            if cut {
                // It may have been done on the connection that broke.
                sent |= trouble.is_sent();
                self.shared.held.give_up();
            }
            // Who cuts one connection often cuts all of them, which takes a moment in which the next one still answers.
            sleep(jitter((PAUSE * (1 << failures.min(8)) / 2).min(LONGEST_PAUSE))).await;
        }
    }

    async fn send(&self, statement: &Statement, values: &[Value<'_>]) -> Result<Answer<D::Row>, Trouble> {
        let Shared { pool, held, .. } = &*self.shared;
        let _turn = held.turn(pool).await.map_err(Trouble::Unsent)?;
        let mut connection = match held.take() {
            Some(connection) => connection,
            None => self.connection().await?,
        };
        // Where this fails, or is dropped half-way, the pool looks after the connection.
        let answer = D::ask(&mut connection, statement, values).await.map_err(Trouble::Failed)?;
        held.keep(pool, connection);
        Ok(answer)
    }

    pub(super) async fn connection(&self) -> Result<PoolConnection<D>, Trouble> {
        self.shared.pool.acquire().await.map_err(Trouble::Unsent)
    }
}
