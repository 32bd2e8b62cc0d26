//! The end of a claim in transaction mode: the transaction is committed with the record in it, or rolled back.

use super::{RunState, end_request::EndRequest, finish::FinishOutcome};
use crate::{
    engine::{Engine, timer::bounded},
    store::{Committed, FailedAttempt, Transaction},
    value::{Event, StoreError, StoreVerb},
};

impl Engine {
    /// Commits the transaction with the record in it, or rolls it back.
    pub(super) async fn end_transaction(
        &self,
        state: &RunState,
        transaction: Box<dyn Transaction>,
        end: EndRequest,
    ) -> FinishOutcome {
        let (key, verb) = (&state.key, end.verb());
        let failed = |error: &StoreError| {
            self.report(&Event::StoreFailed { key, verb, error, retried: false });
            self.report(&Event::NotRecorded { key, verb });
        };
        match end {
            EndRequest::Settle(settlement, not_kept) => {
                let payload = settlement.payload.clone();
                match bounded(transaction.commit(settlement), self.store_timeout).await {
                    Ok(Committed::Done) => {
                        state.report_settled(self, payload.as_ref(), not_kept);
                        FinishOutcome::Recorded
                    }
                    Ok(Committed::RolledBack(error)) => {
                        failed(&error);
                        FinishOutcome::RolledBack
                    }
                    Err(error) => {
                        failed(&error);
                        FinishOutcome::Unknown
                    }
                }
            }
            EndRequest::Release(_) => {
                // Whatever the database says: a transaction that is not committed ends with its connection.
                match bounded(transaction.roll_back(), self.store_timeout).await {
                    Ok(()) => state.report_released(self),
                    Err(error) => failed(&error),
                }
                FinishOutcome::Recorded
            }
        }
    }

    /// Records an attempt whose transaction was rolled back, in one statement of its own. If the store fails, the
    /// attempt does not count.
    pub(super) async fn record_failure(&self, state: &RunState, failed: FailedAttempt) {
        let Some(store) = &self.transactions else { return };
        let (key, settles) = (&state.key, failed.payload.is_some());
        let verb = if settles { StoreVerb::Settle } else { StoreVerb::Release };
        match bounded(store.record_failure(key, &state.claim, &failed), self.store_timeout).await {
            Ok(()) if settles => state.report_settled(self, failed.payload.as_ref(), None),
            Ok(()) => {}
            Err(error) => {
                self.report(&Event::StoreFailed { key, verb, error: &error, retried: false });
                self.report(&Event::NotRecorded { key, verb });
            }
        }
    }
}
