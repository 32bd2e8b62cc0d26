use std::{future::Future, time::Duration};

use bytes::Bytes;
use tokio::time::{sleep, timeout};

use super::{Abandoned, Resolution, reconciler::Worker};
use crate::{
    engine::{CatchUnwind, Execution, ExecutionOutcome, Fate, NoOutcome, Work},
    store::{Claim, Claimant, Entry, Finished, RecordKey, Release, Settlement, StoreFuture},
    value::{Digest, RunSettings, hex},
};

/// Where the claims of reconcilers are kept, beside the records that they are about.
const ROUTE: &str = "tower-idempotency/reconcile";

/// How long it is remembered who had a record that is no longer abandoned.
const AFTERWARDS: Duration = Duration::from_secs(60);

const TRIES: u32 = 3;

/// How one record ended, for this sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Settled,
    Released,
    #[cfg_attr(not(feature = "_sql"), expect(dead_code, reason = "outboxes are in databases"))]
    Discarded,
    Left,
    Skipped,
    Failed,
}

impl Ended {
    /// Returns how a record would end.
    pub(super) fn of(resolution: &Resolution) -> Self {
        match resolution {
            Resolution::Settle(_) => Self::Settled,
            Resolution::Release => Self::Released,
            Resolution::Leave => Self::Left,
        }
    }
}

/// Returns whether a record is a reconciler's own claim.
pub(super) fn is_own(key: &RecordKey) -> bool {
    key.route() == ROUTE
}

/// Returns the name of what one process at a time works on: a record under one claimant. `None` is not to be expected.
pub(super) fn claim_key(entry: &Entry) -> Option<RecordKey> {
    let mut digest = Digest::new();
    digest.part(entry.key.as_bytes());
    digest.part(&entry.record.claimant.to_bytes());
    RecordKey::new(ROUTE, None, &hex(&digest.finish())).ok()
}

/// Returns the same name for a message of an outbox.
#[cfg(feature = "_sql")]
pub(super) fn case_of_message(id: &str) -> Option<RecordKey> {
    let mut digest = Digest::new();
    digest.part(b"outbox");
    digest.part(id.as_bytes());
    RecordKey::new(ROUTE, None, &hex(&digest.finish())).ok()
}

impl Worker {
    /// Works on a case that no other process works on.
    ///
    /// The case stays claimed for as long as that takes. A case that is left stays settled for as long as it is to be
    /// left alone, whichever process asks.
    pub(super) async fn alone(&self, case: RecordKey, working: impl Future<Output = Ended>) -> Ended {
        let policy = RunSettings { retention: self.pause(&case), ..*self.policy };
        let claim = Claim::new(policy.lease, policy.horizon());
        let errand = Execution { key: &case, claim: &claim, policy: &policy, counts: None };
        let job = |_| async move {
            let ended = working.await;
            let fate = match ended {
                Ended::Left | Ended::Failed => Fate::Settle(None),
                Ended::Settled | Ended::Released | Ended::Discarded | Ended::Skipped => Fate::Release(AFTERWARDS),
            };
            (ended, fate)
        };
        match self.engine.perform(&Work::new(), errand, job).await {
            ExecutionOutcome::Ran(ended) => {
                if matches!(ended, Ended::Left | Ended::Failed) {
                    self.leave(case);
                }
                ended
            }
            ExecutionOutcome::Settled(_) | ExecutionOutcome::NoOutcome(NoOutcome::Running(_)) => Ended::Skipped,
            ExecutionOutcome::NoOutcome(_) => Ended::Failed,
        }
    }

    /// Brings an abandoned record to an end.
    pub(super) async fn resolve(&self, entry: Entry) -> Ended {
        let seen = entry.record.claimant;
        // It may have ended between the list and the claim, in another process's hands too.
        let entry = match timeout(self.engine.store_timeout, self.operator.inspect(&entry.key)).await {
            Ok(Ok(Some(record))) if record.is_abandoned() && record.claimant == seen => Entry::new(entry.key, record),
            Ok(Ok(_)) => return Ended::Skipped,
            Ok(Err(_)) | Err(_) => return Ended::Failed,
        };
        let key = entry.key.clone();
        let resolution = self.ask(entry, false).await;
        let ended = self.carry_out(&key, seen, resolution).await;
        #[cfg(feature = "tracing")]
        tracing::info!(key = self.engine.log_id(&key), outcome = ?ended, "reconciled");
        ended
    }

    /// Asks the application. Its panics are reported by the panic hook.
    pub(super) async fn ask(&self, entry: Entry, dry_run: bool) -> Resolution {
        let abandoned = Abandoned { entry, dry_run, secret: self.engine.secret.clone() };
        let asked = async move { (self.application)(abandoned).await };
        CatchUnwind::new(asked).await.unwrap_or(Resolution::Leave)
    }

    async fn carry_out(&self, key: &RecordKey, seen: Claimant, resolution: Resolution) -> Ended {
        // One for all tries, so that the store recognizes a repetition.
        let own = Claimant::random();
        match resolution {
            Resolution::Settle(payload) => {
                let payload: Option<Bytes> = payload.into();
                let settlement = Settlement::new(own, payload, self.retention);
                self.retry(Ended::Settled, || self.operator.settle_as(key, seen, &settlement)).await
            }
            Resolution::Release => {
                let release = Release::new(own, self.retention);
                self.retry(Ended::Released, || self.operator.release_as(key, seen, &release)).await
            }
            Resolution::Leave => Ended::Left,
        }
    }

    async fn retry<'a>(&self, done: Ended, call: impl Fn() -> StoreFuture<'a, Finished>) -> Ended {
        for again in 0..TRIES {
            if again > 0 {
                sleep(Duration::from_millis(100) * again).await;
            }
            match timeout(self.engine.store_timeout, call()).await {
                Ok(Ok(Finished::Done | Finished::AlreadyDone)) => return done,
                Ok(Ok(Finished::Refused(_))) => break,
                Ok(Err(error)) if !error.is_temporary() => break,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Ended::Failed
    }
}
