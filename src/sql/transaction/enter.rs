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
        driver::{SqlDatabase, Value},
        error::{CommandError, Refusal, torn},
        statement::Statement,
        store::{
            claim::claimed,
            retry::read,
            stored::{Row, Stored},
            values::{Marks, bytes, over_expired, taken},
        },
    },
    store::{Claimed, Entered, Granted},
    value::{Claim, Head, RecordKey, StoreError, UNRECONCILED, Verdict, jitter, judge},
};

use super::{
    open::{Live, Open, Permits},
    running::{Place, Runner},
};

/// How often a claim that lost against others begins anew, and how long it waits before.
///
/// On MariaDB a lock on another key's neighbourhood, such as a purge takes, looks like a lock on the key; it is gone a
/// moment later.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(4);

/// The result of an attempt to write the claim.
enum Attempt<D: SqlDatabase> {
    Written(Live<D>),
    /// Another claim has the key, or the record is no longer the one that was seen.
    Refused(Option<Place<D>>),
    /// The statement lost, which proves nothing about the key.
    Lost(Option<Place<D>>),
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Checks first the claims that run in this process, then the committed record, and then lets the database decide.
    ///
    /// No claim is refused because of a lock or a running claim before the committed record was read: otherwise
    /// duplicates of a settled key would refuse one another.
    pub(super) async fn enter_transaction(&self, key: &RecordKey, claim: &Claim) -> Result<Entered, StoreError> {
        let id = self.space.id(key);
        let runner = self.shared.running.get(&id);
        if let Some(Runner { head, written: true }) = &runner {
            return Ok(refused(head, claim));
        }
        let mut looks = runner.is_some() || self.looks_first(&id);
        let mut place = None;
        for tries in (0..TRIES).rev() {
            let found = match if looks { self.seen(&id).await? } else { Ok(None) } {
                Ok(found) => found,
                Err(newer) => return Ok(Entered::Refused(newer)),
            };
            let granted = match verdict(found.as_ref(), claim) {
                Verdict::Grant(granted) => granted,
                verdict => return Ok(Entered::Refused(claimed(verdict, found))),
            };
            let mine = match place.take() {
                Some(place) => place,
                None => match Place::take(&self.shared, &id, claim, granted) {
                    Ok(place) => place,
                    Err(runner) if looks || runner.written => return Ok(refused(&runner.head, claim)),
                    // The other claim may find that the key is settled; the committed record shows whether it is.
                    Err(_) => {
                        looks = true;
                        continue;
                    }
                },
            };
            place = match self.write(&id, key, &unknown_end(claim), found.as_ref(), granted, mine).await? {
                Attempt::Written(live) => {
                    let open = Open::new(Arc::clone(&self.shared), live, id);
                    return Ok(Entered::Granted(granted, Box::new(open)));
                }
                Attempt::Lost(place) if tries > 0 => {
                    sleep(jitter(PAUSE)).await;
                    place
                }
                // A record that was not read yet may be one that can be claimed.
                Attempt::Refused(place) if !looks && tries > 0 => place,
                Attempt::Refused(_) | Attempt::Lost(_) => break,
            };
            looks = true;
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
    fn looks_first(&self, id: &[u8]) -> bool {
        D::ONE_WRITER || self.shared.met.has(id) || self.shared.seats.available_permits() == 0
    }

    /// Returns the committed record.
    async fn seen(&self, id: &[u8]) -> Result<Result<Option<Stored>, Claimed>, StoreError> {
        let rows = self.rows(&self.shared.statements.look, &[bytes(id)]).await?;
        Ok(match rows.first().map(read::<D>).transpose()? {
            Some(Row::Newer) => Err(Claimed::Incompatible),
            Some(Row::Torn) => return Err(torn::<D>()),
            Some(Row::Record(stored)) => {
                self.shared.met.add(id);
                Ok(Some(*stored))
            }
            Some(Row::Fresh) | None => Ok(None),
        })
    }

    /// Opens a transaction and writes the claim in it, without waiting for other transactions that have written the
    /// key.
    async fn write(
        &self,
        id: &[u8],
        key: &RecordKey,
        claim: &Claim,
        seen: Option<&Stored>,
        granted: Granted,
        place: Place<D>,
    ) -> Result<Attempt<D>, StoreError> {
        let shared = &self.shared;
        let seat = permit(Some(&shared.seats)).await;
        let permits = [seat, permit(shared.writing.as_ref()).await, permit(shared.held.turns()).await];
        let begun = self.begun(claim, place, permits).await;
        let mut live = begun.map_err(|trouble| trouble.into_error::<D>(false))?;
        let marks = Marks::of(claim, granted);
        let enter = &self.shared.statements.enter;
        let written = match seen {
            None => self.ask_in(&mut live, &enter.open, self.fresh(id, key, claim, &marks), id).await,
            Some(seen) if seen.is_there() => {
                let holder = seen.as_record().claimant.to_bytes();
                let values = taken(id, claim, seen, granted, &marks, &holder);
                self.ask_in(&mut live, &enter.take, values, id).await
            }
            Some(_) => self.ask_in(&mut live, &enter.begin, over_expired(id, claim, &marks), id).await,
        };
        let lost = match written {
            Ok(1..) => {
                live.written();
                return Ok(Attempt::Written(live));
            }
            Ok(0) => false,
            Err(Error::Database(error)) if D::refusal(&*error) == Refusal::Victim => true,
            Err(error) => return Err(CommandError::Failed(error).into_error::<D>(false)),
        };
        let place = live.leave().await;
        Ok(if lost { Attempt::Lost(place) } else { Attempt::Refused(place) })
    }

    /// Sends a claiming statement in the transaction, with the number of its lock if the database takes one.
    async fn ask_in<'a>(
        &self,
        live: &mut Live<D>,
        statement: &Statement,
        mut values: Vec<Value<'a>>,
        id: &'a [u8],
    ) -> Result<u64, Error> {
        if D::LOCKS_BY_NUMBER {
            values.push(Value::Int(self.shared.table.lock(id)));
        }
        Ok(D::ask(live.connection_mut(), statement, &values).await?.count)
    }

    /// Begins a transaction, on a connection at hand if there is one and the pool is the store's own: hooks of the
    /// application's pool see every connection before and after a handler uses it.
    async fn begun(&self, claim: &Claim, place: Place<D>, permits: Permits) -> Result<Live<D>, CommandError> {
        self.begin_purging();
        let begin = D::begin_text(claim.lease);
        let at_hand = if self.shared.held.is_own() { self.shared.held.take() } else { None };
        let may_be_cut = at_hand.is_some();
        let connection = match at_hand {
            Some(at_hand) => at_hand.connection,
            None => self.connection().await?,
        };
        // From here on a connection that is dropped is closed: the pool would not know that it has an open transaction.
        let mut live = Live::new(connection, Arc::clone(&self.shared), place, permits);
        match live.begin(&begin).await.map_err(CommandError::Failed) {
            Ok(()) => return Ok(live),
            Err(trouble) if may_be_cut && trouble.is_cut::<D>() => self.shared.held.give_up(),
            Err(trouble) => return Err(trouble),
        }
        live.replace(self.connection().await?);
        live.begin(&begin).await.map_err(CommandError::Failed)?;
        Ok(live)
    }
}

/// Returns the answer to a claim if another one runs in this process.
fn refused(head: &Head<'_>, claim: &Claim) -> Entered {
    Entered::Refused(claimed(judge(Some(head), claim, 0), None))
}

/// Returns the claim with an unknown end: if it is ever seen without its answer, it was committed by hand, and its
/// outcome is unknown.
fn unknown_end(claim: &Claim) -> Claim {
    Claim { at_most_once: true, horizon: claim.horizon.max(UNRECONCILED), ..claim.clone() }
}

/// Judges a committed record.
fn verdict(found: Option<&Stored>, claim: &Claim) -> Verdict {
    judge(found.map(Stored::head).as_ref(), claim, found.map_or(0, |stored| stored.now.unsigned_abs()))
}

/// Waits for a permit, if there is a bound.
async fn permit(semaphore: Option<&Arc<Semaphore>>) -> Option<OwnedSemaphorePermit> {
    match semaphore {
        Some(semaphore) => Arc::clone(semaphore).acquire_owned().await.ok(),
        None => None,
    }
}
