//! Reading a record again and again for those who wait, until its claim has ended.
//!
//! A process that ends a claim wakes its own waiters without a read. For claims of other processes the record is read,
//! with growing pauses, once for all waiters of this process.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use crate::{
    sql::{SqlStore, driver::SqlDatabase},
    value::{Claimant, RecordKey, StoreError, jitter},
};

use super::{
    record_waiters::{ClaimStatus, RecordWaiter, WaitedRecord},
    retry::unreadable,
    values::bytes,
};

/// The pause before a record is read for the second time; each further pause is longer, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause while newcomers wait for their first read. All waiters of a record in a process share its reads,
/// so this bounds them to ten a second, including the first second with its shorter pauses.
const NEWCOMERS_PAUSE: Duration = Duration::from_millis(125);

impl<D: SqlDatabase> SqlStore<D> {
    /// Waits until the record is no longer running under `holder`, but not longer than `within`.
    pub(in crate::sql) async fn wait(
        &self,
        key: &RecordKey,
        holder: Claimant,
        within: Duration,
    ) -> Result<(), StoreError> {
        let id = self.space.id(key);
        let mut waiter = self.shared.waiters.join(&id);
        if waiter.is_first() {
            let (store, watched) = (self.clone(), Arc::clone(waiter.watched()));
            tokio::spawn(async move { store.poll_for_all(&id, &watched).await });
        }
        timeout(within, until_ended(&mut waiter, holder)).await.unwrap_or(Ok(()))
    }

    /// Reads a record again and again until it has no waiters any more.
    async fn poll_for_all(&self, id: &[u8], watched: &WaitedRecord) {
        let mut pause = FIRST_PAUSE;
        while let Some(newcomers) = watched.begin() {
            if newcomers {
                pause = pause.min(NEWCOMERS_PAUSE);
            }
            let began = Instant::now();
            watched.end(self.holder(id).await, newcomers);
            let _ = timeout((pause + jitter(pause) / 4).saturating_sub(began.elapsed()), watched.left()).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns whose claim is running.
    async fn holder(&self, id: &[u8]) -> ClaimStatus {
        let read = async {
            let rows = self.rows(&self.shared.statements.runs, &[bytes(id)]).await?;
            rows.first().map(|row| D::bytes(row, 0).map_err(unreadable::<D>)).transpose()
        };
        match read.await {
            Ok(Some(Some(claimant))) => ClaimStatus::Running(claimant),
            Ok(_) => ClaimStatus::Ended,
            Err(error) => ClaimStatus::Failed(error.kind(), error.to_string()),
        }
    }
}

/// Resolves once the news say that the claim has ended, or that the reads fail.
async fn until_ended(waiter: &mut RecordWaiter<'_>, holder: Claimant) -> Result<(), StoreError> {
    let holder = holder.to_bytes();
    loop {
        match waiter.news() {
            Some(ClaimStatus::Running(claimant)) if claimant == holder => {}
            Some(ClaimStatus::Failed(kind, message)) => return Err(StoreError::new(kind, message)),
            Some(_) => return Ok(()),
            None => {}
        }
        waiter.changed().await;
    }
}
