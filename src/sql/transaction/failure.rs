//! Counting an attempt whose transaction was rolled back, in a statement outside of it, for messages.

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
        store::{
            record_row::word,
            values::{Marks, names, time},
        },
    },
    store::FailedAttempt,
    value::{Claim, RecordKey, State, StoreError},
};

impl<D: SqlDatabase> SqlStore<D> {
    /// Writes, in one statement, a record that the next claim in a transaction finds.
    pub(super) async fn record_failed(
        &self,
        key: &RecordKey,
        claim: &Claim,
        failed: &FailedAttempt,
    ) -> Result<(), StoreError> {
        let (id, marks) = (self.space.id(key), Marks::of(claim, failed.granted));
        let state = if failed.payload.is_some() { State::Settled } else { State::Released };
        let values = [
            &names(&self.space, &id, key)[..],
            &[Value::Text(Some(word(state))), Value::Int(failed.granted.attempt.into())],
            &marks.values(),
            &[time(failed.keep), Value::Bytes(failed.payload.as_deref())],
        ]
        .concat();
        self.change(&self.shared.statements.record_failure, &values).await?;
        self.shared.recent_keys.add(&id);
        Ok(())
    }
}
