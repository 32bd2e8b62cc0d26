//! The claim in transaction mode.
//!
//! The order of the questions keeps duplicates from harming each other. First the keys that run in this process: no
//! connection is needed. Then the committed record: a settled key is answered without a transaction. Then the database:
//! the claim is written in a transaction with locks that are tried. A claim that is refused by a lock reads once more
//! before it answers, since the winner may have committed.

use std::{sync::Arc, time::Duration};

use sqlx::Error;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};

use crate::{
    sql::{
        SqlStore,
        driver::{ErrorClass, SqlDatabase, Value},
        error::{StatementError, corrupt},
        statement::Statement,
        store::{
            claim::claimed,
            record_row::{FetchedRecord, RecordRow},
            retry::read,
            values::{Marks, bytes, replace_values, takeover_values},
        },
    },
    store::{Claimed, Entered, Granted},
    value::{Claim, RecordHead, RecordKey, StoreError, UNRECONCILED, Verdict, jitter, judge},
};

use super::{
    claim_transaction::ClaimTransaction,
    in_process_claims::ClaimEntry,
    open_transaction::{OpenTransaction, Permits},
    running_claim::RunningClaim,
};

/// How often a claim that lost against others begins anew, and how long it waits before.
///
/// On MariaDB a lock on another key's neighbourhood, such as a purge takes, looks like a lock on the key; it is gone a
/// moment later.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(4);

/// The result of an attempt to write the claim.
enum WriteOutcome<D: SqlDatabase> {
    Written(OpenTransaction<D>),
    /// Another claim has the key, or the record is no longer the one that was seen.
    Refused(Option<RunningClaim<D>>),
    /// The statement lost, which proves nothing about the key.
    Lost(Option<RunningClaim<D>>),
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Checks first the claims that run in this process, then the committed record, and then lets the database decide.
    ///
    /// No claim is refused because of a lock or a running claim before the committed record was read: otherwise
    /// duplicates of a settled key would refuse one another.
    pub(super) async fn begin_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Entered, StoreError> {
        let id = self.space.id(key);
        let runner = self.shared.running.get(&id);
        if let Some(ClaimEntry { head, written: true }) = &runner {
            return Ok(refused(head, claim));
        }
        let mut reads_first = runner.is_some() || self.should_read_first(&id);
        let mut running = None;
        for tries in (0..TRIES).rev() {
            let found = match if reads_first { self.seen(&id).await? } else { Ok(None) } {
                Ok(found) => found,
                Err(newer) => return Ok(Entered::Refused(newer)),
            };
            let granted = match verdict(found.as_ref(), claim) {
                Verdict::Grant(granted) => granted,
                verdict => return Ok(Entered::Refused(claimed(verdict, found))),
            };
            let own = match running.take() {
                Some(running) => running,
                None => match RunningClaim::take(&self.shared, &id, claim, granted) {
                    Ok(running) => running,
                    Err(runner) if reads_first || runner.written => return Ok(refused(&runner.head, claim)),
                    // The other claim may find that the key is settled; the committed record shows whether it is.
                    Err(_) => {
                        reads_first = true;
                        continue;
                    }
                },
            };
            running = match self.write(&id, key, &unknown_end(claim), found.as_ref(), granted, own).await? {
                WriteOutcome::Written(open) => {
                    let open = ClaimTransaction::new(Arc::clone(&self.shared), open, id);
                    return Ok(Entered::Granted(granted, Box::new(open)));
                }
                WriteOutcome::Lost(running) if tries > 0 => {
                    sleep(jitter(PAUSE)).await;
                    running
                }
                // A record that was not read yet may be one that can be claimed.
                WriteOutcome::Refused(running) if !reads_first && tries > 0 => running,
                WriteOutcome::Refused(_) | WriteOutcome::Lost(_) => break,
            };
            reads_first = true;
        }
        // The claim before this one may have committed since the read.
        let found = match self.seen(&id).await? {
            Ok(found) => found,
            Err(newer) => return Ok(Entered::Refused(newer)),
        };
        Ok(Entered::Refused(match verdict(found.as_ref(), claim) {
            Verdict::Grant(_) => Claimed::Running { holder: claim.claimant, left: claim.lease },
            verdict => claimed(verdict, found),
        }))
    }

    /// Returns whether the record is read before it is written.
    ///
    /// A key that this process has not seen is most likely free, and a read costs as much as the insert that would find
    /// out otherwise. But if the claim has to wait for a transaction, an existing answer would have to wait too.
    fn should_read_first(&self, id: &[u8]) -> bool {
        D::ONE_WRITER || self.shared.recent_keys.has(id) || self.shared.seats.available_permits() == 0
    }

    /// Returns the committed record.
    async fn seen(&self, id: &[u8]) -> Result<Result<Option<FetchedRecord>, Claimed>, StoreError> {
        let rows = self.rows(&self.shared.statements.look, &[bytes(id)]).await?;
        Ok(match rows.first().map(read::<D>).transpose()? {
            Some(RecordRow::Newer) => Err(Claimed::Incompatible),
            Some(RecordRow::Corrupt) => return Err(corrupt::<D>()),
            Some(RecordRow::Record(stored)) => {
                self.shared.recent_keys.add(id);
                Ok(Some(*stored))
            }
            Some(RecordRow::Fresh) | None => Ok(None),
        })
    }

    /// Opens a transaction and writes the claim in it, without waiting for other transactions that have written the
    /// key.
    async fn write(
        &self,
        id: &[u8],
        key: &RecordKey,
        claim: &Claim,
        seen: Option<&FetchedRecord>,
        granted: Granted,
        running: RunningClaim<D>,
    ) -> Result<WriteOutcome<D>, StoreError> {
        let shared = &self.shared;
        let seat = permit(Some(&shared.seats)).await;
        let permits = [seat, permit(shared.writing.as_ref()).await, permit(shared.held.turns()).await];
        let begun = self.open_transaction(claim, running, permits).await;
        let mut open = begun.map_err(|error| error.into_error::<D>(false))?;
        let marks = Marks::of(claim, granted);
        let enter = &self.shared.statements.enter;
        let written = match seen {
            None => self.ask_in(&mut open, &enter.open, self.fresh(id, key, claim, &marks), id).await,
            Some(seen) if seen.is_there() => {
                let holder = seen.as_record().claimant.to_bytes();
                let values = takeover_values(id, claim, seen, granted, &marks, &holder);
                self.ask_in(&mut open, &enter.take, values, id).await
            }
            Some(_) => self.ask_in(&mut open, &enter.begin, replace_values(id, claim, &marks), id).await,
        };
        let lost = match written {
            Ok(1..) => {
                open.written();
                return Ok(WriteOutcome::Written(open));
            }
            Ok(0) => false,
            Err(Error::Database(error)) if D::refusal(&*error) == ErrorClass::Conflict => true,
            Err(error) => return Err(StatementError::Failed(error).into_error::<D>(false)),
        };
        let running = open.abandon().await;
        Ok(if lost { WriteOutcome::Lost(running) } else { WriteOutcome::Refused(running) })
    }

    /// Sends a claiming statement in the transaction, with the number of its lock if the database takes one.
    async fn ask_in<'a>(
        &self,
        open: &mut OpenTransaction<D>,
        statement: &Statement,
        mut values: Vec<Value<'a>>,
        id: &'a [u8],
    ) -> Result<u64, Error> {
        if D::LOCKS_BY_NUMBER {
            values.push(Value::Int(self.shared.table.lock(id)));
        }
        Ok(D::ask(open.connection_mut(), statement, &values).await?.count)
    }

    /// Begins a transaction, on a connection at hand if there is one and the pool is the store's own: hooks of the
    /// application's pool see every connection before and after a handler uses it.
    async fn open_transaction(
        &self,
        claim: &Claim,
        running: RunningClaim<D>,
        permits: Permits,
    ) -> Result<OpenTransaction<D>, StatementError> {
        self.begin_purging();
        let text = D::begin_text(claim.lease);
        let at_hand = if self.shared.held.is_own() { self.shared.held.take() } else { None };
        let may_be_cut = at_hand.is_some();
        let connection = match at_hand {
            Some(at_hand) => at_hand.connection,
            None => self.connection().await?,
        };
        // From here on a connection that is dropped is closed: the pool would not know that it has an open transaction.
        let mut open = OpenTransaction::new(connection, Arc::clone(&self.shared), running, permits);
        match open.begin(&text).await.map_err(StatementError::Failed) {
            Ok(()) => return Ok(open),
            Err(error) if may_be_cut && error.is_disconnect::<D>() => self.shared.held.give_up(),
            Err(error) => return Err(error),
        }
        open.replace(self.connection().await?);
        open.begin(&text).await.map_err(StatementError::Failed)?;
        Ok(open)
    }
}

/// Returns the answer to a claim if another one runs in this process.
fn refused(head: &RecordHead<'_>, claim: &Claim) -> Entered {
    Entered::Refused(claimed(judge(Some(head), claim, 0), None))
}

/// Returns the claim with an unknown end: if it is ever seen without its answer, it was committed by hand, and its
/// outcome is unknown.
fn unknown_end(claim: &Claim) -> Claim {
    Claim { at_most_once: true, horizon: claim.horizon.max(UNRECONCILED), ..claim.clone() }
}

/// Judges a committed record.
fn verdict(found: Option<&FetchedRecord>, claim: &Claim) -> Verdict {
    judge(found.map(FetchedRecord::head).as_ref(), claim, found.map_or(0, |stored| stored.now.unsigned_abs()))
}

/// Waits for a permit, if there is a bound.
async fn permit(semaphore: Option<&Arc<Semaphore>>) -> Option<OwnedSemaphorePermit> {
    match semaphore {
        Some(semaphore) => Arc::clone(semaphore).acquire_owned().await.ok(),
        None => None,
    }
}
