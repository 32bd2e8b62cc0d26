//! Renew, settle, release and undo: one statement each, whose `WHERE` names the claimant.
//!
//! A statement that changes no row is the answer "not yours". Only then the record is read, to say why: done already,
//! or what it is now.

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
        error::{corrupt, newer},
        statement::Statement,
    },
    store::{Finished, Renewed},
    value::{Behalf, Caller, Claim, Claimant, Ending, Hold, Record, RecordKey, Release, Settlement, StoreError},
};

use super::{
    record_row::RecordRow,
    retry::read,
    values::{bytes, lease_and_life, time},
};

impl<D: SqlDatabase> SqlStore<D> {
    /// Renews a lease.
    pub(in crate::sql) async fn renew_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Renewed, StoreError> {
        let (id, claimant) = (self.space.id(key), claim.claimant.to_bytes());
        let values = [&lease_and_life(claim)[..], &[bytes(&id), bytes(&claimant)]].concat();
        let prolonged = self.change(&self.shared.statements.renew, &values).await? > 0;
        Ok(if prolonged { Renewed::Done } else { Renewed::Lost })
    }

    /// Settles, by the claimant or on its behalf.
    pub(in crate::sql) async fn settle_record(
        &self,
        key: &RecordKey,
        behalf: Behalf,
        settlement: &Settlement,
    ) -> Result<Finished, StoreError> {
        let (id, by) = (self.space.id(key), settlement.claimant);
        let what = [Value::Bytes(settlement.payload.as_deref()), time(settlement.retention)];
        let statements = &self.shared.statements;
        let ended = self.end((&statements.settle, &statements.settle_as), &what, &id, behalf, by).await?;
        self.finished(ended, &id, |hold| hold.settle(by, behalf)).await
    }

    /// Releases or undoes, by the claimant or on its behalf.
    pub(in crate::sql) async fn release_record(
        &self,
        key: &RecordKey,
        behalf: Behalf,
        release: &Release,
    ) -> Result<Finished, StoreError> {
        let (id, by) = (self.space.id(key), release.claimant);
        let statements = &self.shared.statements;
        let ended = if release.undo {
            self.undo(&id, behalf, release).await?
        } else {
            let what = [time(release.keep)];
            self.end((&statements.release, &statements.release_as), &what, &id, behalf, by).await?
        };
        self.finished(ended, &id, |hold| hold.release(by, behalf)).await
    }

    /// Undoes a claim: a first claim leaves no record, unless the record is a token's.
    async fn undo(&self, id: &[u8], behalf: Behalf, release: &Release) -> Result<u64, StoreError> {
        let (by, of) = (release.claimant.to_bytes(), behalf.runner(release.claimant).to_bytes());
        // On behalf of a runner, only a lapsed claim is undone.
        let own = Value::Flag(behalf == Behalf::Own);
        let statements = &self.shared.statements;
        let undone = self.change(&statements.undo_first, &[bytes(id), bytes(&of), own]).await?;
        if undone > 0 {
            return Ok(undone);
        }
        let nobody = Caller::NONE.to_bytes();
        let values = [time(release.keep), bytes(&nobody), bytes(&nobody), bytes(&by), bytes(id), bytes(&of), own];
        self.change(&statements.undo, &values).await
    }

    /// Ends a claim in one statement: the claimant's own, or an abandoned one on behalf of its runner.
    async fn end(
        &self,
        (own, in_place): (&Statement, &Statement),
        what: &[Value<'_>],
        id: &[u8],
        behalf: Behalf,
        by: Claimant,
    ) -> Result<u64, StoreError> {
        let (by, of) = (by.to_bytes(), behalf.runner(by).to_bytes());
        match behalf {
            Behalf::Own => self.change(own, &[what, &[bytes(id), bytes(&of)]].concat()).await,
            Behalf::Of(_) => self.change(in_place, &[what, &[bytes(&by), bytes(id), bytes(&of)]].concat()).await,
        }
    }

    /// Returns the outcome for the number of changed rows. If none was changed, the rules say why, by the record that
    /// exists.
    async fn finished(
        &self,
        ended: u64,
        id: &[u8],
        rule: impl Fn(Hold) -> Ending + Send,
    ) -> Result<Finished, StoreError> {
        if ended > 0 {
            self.shared.waiters.wake(id);
            return Ok(Finished::Done);
        }
        let record = self.record(id).await?;
        Ok(match record.as_ref().map(|record| rule(Hold::from(record))) {
            Some(Ending::AlreadyDone) => Finished::AlreadyDone,
            // A record that could be ended by now has become so since the statement.
            _ => Finished::Refused(record.map(Box::new)),
        })
    }

    /// Returns the record, if it exists.
    pub(in crate::sql) async fn record(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        let rows = self.rows(&self.shared.statements.inspect, &[bytes(id)]).await?;
        match rows.first().map(read::<D>).transpose()? {
            Some(RecordRow::Record(stored)) if stored.is_there() => Ok(Some(stored.into_record())),
            Some(RecordRow::Newer) => Err(newer::<D>()),
            Some(RecordRow::Corrupt) => Err(corrupt::<D>()),
            _ => Ok(None),
        }
    }
}
