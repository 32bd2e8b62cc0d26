//! Issue and claim.
//!
//! The record is read, `judge` decides, and a grant is written by a statement that compares what was read. If another
//! claim was faster, no row changes, and the claim begins again with a new read.
//!
//! | the key | PostgreSQL | MariaDB, SQLite |
//! | --- | --- | --- |
//! | free | `claim` inserts | `look` reads, `claim` inserts |
//! | running, settled | `claim` reads, or `look` if the key was seen recently | `look` reads |
//! | lapsed, released, issued | the read, then `take` | the same |
//! | expired | the read, then `begin` | the same |

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
        error::corrupt,
    },
    store::{Claimed, Granted, Issued},
    value::{Claim, Issue, RecordKey, StoreError, StoreErrorKind, Verdict, judge},
};

use super::{
    SqlShared,
    record_row::{FetchedRecord, RecordRow},
    retry::read,
    values::{Marks, bytes, lease_and_life, names, note, replace_values, takeover_values, time},
};

/// How often a claim reads a record again that has changed in between.
const LOOKS: usize = 32;

impl<D: SqlDatabase> SqlStore<D> {
    /// Issues a token: inserts its record, or replaces one that has expired.
    pub(in crate::sql) async fn issue_record(&self, key: &RecordKey, issue: &Issue) -> Result<Issued, StoreError> {
        let id = self.space.id(key);
        let nobody = Marks::nobody();
        let binding = [Some(&*issue.binding.purpose), issue.binding.principal.as_deref()].map(Value::Text);
        let rest = [&nobody.values()[..], &[time(issue.lifetime); 2], &binding].concat();
        let statements = &self.shared.statements;
        let fresh = [&names(&self.space, &id, key)[..], &rest].concat();
        if self.change(&statements.issue, &fresh).await? > 0 {
            return Ok(Issued::Done);
        }
        let values = [&rest[..], &[bytes(&id)]].concat();
        Ok(if self.change(&statements.reissue, &values).await? > 0 { Issued::Done } else { Issued::Exists })
    }

    /// Claims a key. On PostgreSQL it takes one statement if the key is free, running or settled, unless the key was
    /// seen recently and is gone. On other databases a free key takes two.
    pub(in crate::sql) async fn try_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Claimed, StoreError> {
        let id = self.space.id(key);
        for _ in 0..LOOKS {
            let found = match self.look(&id, key, claim).await? {
                Some(RecordRow::Fresh) => return Ok(Claimed::Granted(Granted::first(claim))),
                // Whatever a record of a later version means, the key is not free and the record does not match.
                Some(RecordRow::Newer) => return Ok(Claimed::Incompatible),
                Some(RecordRow::Corrupt) => return Err(corrupt::<D>()),
                Some(RecordRow::Record(stored)) => Some(*stored),
                None => None,
            };
            let now = found.as_ref().map_or(0, |stored| stored.now.unsigned_abs());
            let verdict = judge(found.as_ref().map(FetchedRecord::head).as_ref(), claim, now);
            if let Verdict::Grant(granted) = verdict {
                let written = match &found {
                    Some(seen) if seen.is_there() => self.take(&id, claim, seen, granted).await?,
                    Some(_) => self.begin(&id, claim).await?,
                    None if !D::CLAIMS_IN_ONE => self.insert(&id, key, claim).await?,
                    None => false,
                };
                if !written {
                    continue;
                }
            }
            return Ok(claimed(verdict, found));
        }
        let message = format!("{}: the record changed again and again while it was claimed", D::NAME);
        Err(StoreError::new(StoreErrorKind::Unavailable, message).without_effect())
    }

    /// Reads the record. On a database that can do both in one statement, it also claims a free key.
    async fn look(&self, id: &[u8], key: &RecordKey, claim: &Claim) -> Result<Option<RecordRow>, StoreError> {
        let SqlShared { statements, recent_keys, .. } = &*self.shared;
        // A claim that needs an issued record must not create one.
        let rows = if !D::CLAIMS_IN_ONE || claim.issued.is_some() || recent_keys.has(id) {
            self.rows(&statements.look, &[bytes(id)]).await?
        } else {
            let marks = Marks::of(claim, Granted::first(claim));
            self.rows(&statements.claim, &self.fresh(id, key, claim, &marks)).await?
        };
        if rows.is_empty() {
            recent_keys.remove(id);
        } else {
            recent_keys.add(id);
        }
        rows.first().map(read::<D>).transpose()
    }

    /// Inserts the claim's record; returns whether the key was free.
    async fn insert(&self, id: &[u8], key: &RecordKey, claim: &Claim) -> Result<bool, StoreError> {
        let marks = Marks::of(claim, Granted::first(claim));
        let values = self.fresh(id, key, claim, &marks);
        Ok(self.change(&self.shared.statements.claim, &values).await? > 0)
    }

    /// Replaces an expired record by the claim.
    async fn begin(&self, id: &[u8], claim: &Claim) -> Result<bool, StoreError> {
        let marks = Marks::of(claim, Granted::first(claim));
        let values = replace_values(id, claim, &marks);
        Ok(self.change(&self.shared.statements.begin, &values).await? > 0)
    }

    /// Assigns the record to the claim, if it is still as it was seen.
    async fn take(&self, id: &[u8], claim: &Claim, seen: &FetchedRecord, granted: Granted) -> Result<bool, StoreError> {
        let marks = Marks::of(claim, granted);
        let holder = seen.as_record().claimant.to_bytes();
        let values = takeover_values(id, claim, seen, granted, &marks, &holder);
        let taken_over = self.change(&self.shared.statements.take, &values).await? > 0;
        if taken_over {
            self.shared.waiters.wake(id);
        }
        Ok(taken_over)
    }

    /// Returns the values of a record that begins with a claim.
    pub(in crate::sql) fn fresh<'a>(
        &'a self,
        id: &'a [u8],
        key: &'a RecordKey,
        claim: &'a Claim,
        marks: &'a Marks,
    ) -> Vec<Value<'a>> {
        let once = [Value::Flag(claim.at_most_once)];
        [&names(&self.space, id, key)[..], &marks.values(), &once, &lease_and_life(claim), &[note(claim)]].concat()
    }
}

/// Returns the answer to a claim, once its record is written.
pub(in crate::sql) fn claimed(verdict: Verdict, found: Option<FetchedRecord>) -> Claimed {
    Claimed::from_verdict(verdict, || found.and_then(|stored| stored.into_record().payload))
}
