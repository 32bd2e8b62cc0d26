//! Settling in a transaction that the handler manages itself.

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
        error::StatementError,
        store::{
            record_row::RecordRow,
            retry::read,
            values::{bytes, time},
        },
    },
    store::Finished,
    value::{RecordKey, Settlement, State, StoreError},
};

impl<D: SqlDatabase> SqlStore<D> {
    /// Settles a claim in the caller's transaction, so that the answer is recorded if and only if the transaction is
    /// committed.
    ///
    /// It is for handlers behind a layer of the lease mode that manage their transaction by themselves: the handler
    /// settles as the last step before its commit, with the answer that it is about to return. The layer then finds the
    /// record settled by its own claim, and leaves it so.
    ///
    /// ```
    /// # #[cfg(feature = "axum")] {
    /// use axum::{body::Bytes, http::{Response, StatusCode}};
    /// use tower_idempotency::{Operation, SqliteStore, reconcile::Payload, store::Finished};
    ///
    /// async fn pay(store: SqliteStore, operation: Operation) -> Result<Response<Bytes>, sqlx::Error> {
    ///     let mut transaction = store.pool().begin().await?;
    ///     sqlx::query("INSERT INTO payments DEFAULT VALUES").execute(&mut *transaction).await?;
    ///     let response = Response::new(Bytes::from("paid"));
    ///     let settlement = operation.settlement(Payload::response(&response));
    ///     match store.settle_in(&mut transaction, operation.record_key(), &settlement).await {
    ///         Ok(Finished::Done) => transaction.commit().await.map(|()| response),
    ///         // The claim was lost to another: what was done here must not be kept.
    ///         _ => {
    ///             transaction.rollback().await?;
    ///             let mut conflict = Response::new(Bytes::new());
    ///             *conflict.status_mut() = StatusCode::CONFLICT;
    ///             Ok(conflict)
    ///         }
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database does. Nothing is tried again, since the transaction may be broken: roll it
    /// back.
    pub async fn settle_in(
        &self,
        connection: &mut D::Connection,
        key: &RecordKey,
        settlement: &Settlement,
    ) -> Result<Finished, StoreError> {
        let (id, claimant) = (self.space.id(key), settlement.claimant.to_bytes());
        let what = [Value::Bytes(settlement.payload.as_deref()), time(settlement.retention)];
        let values = [&what[..], &[bytes(&id), bytes(&claimant)]].concat();
        let statements = &self.shared.statements;
        let failed = |error| StatementError::Failed(error).into_error::<D>(false);
        if D::ask(connection, &statements.settle, &values).await.map_err(failed)?.count > 0 {
            return Ok(Finished::Done);
        }
        let found = D::ask(connection, &statements.inspect, &[bytes(&id)]).await.map_err(failed)?;
        let record = match found.rows.first().map(read::<D>).transpose()? {
            Some(RecordRow::Record(stored)) if stored.is_there() => Some(stored.into_record()),
            _ => None,
        };
        Ok(match record {
            Some(record) if record.state == State::Settled && record.claimant == settlement.claimant => {
                Finished::AlreadyDone
            }
            record => Finished::Refused(record.map(Box::new)),
        })
    }
}
