use crate::{
    sql::{
        SqlStore,
        driver::{Driver, Value},
        error::{newer, torn},
        statement::Statement,
    },
    store::{Finished, Renewed},
    value::{Caller, Claim, Claimant, Record, RecordKey, Release, Settlement, State, StoreError},
};

use super::{
    retry::read,
    stored::Row,
    values::{bytes, lease_and_life, time},
};

impl<D: Driver> SqlStore<D> {
    pub(in crate::sql) async fn prolong(&self, key: &RecordKey, claim: &Claim) -> Result<Renewed, StoreError> {
        let (id, claimant) = (self.space.id(key), claim.claimant.to_bytes());
        let values = [&lease_and_life(claim)[..], &[bytes(&id), bytes(&claimant)]].concat();
        let prolonged = self.change(&self.shared.statements.renew, &values).await? > 0;
        Ok(if prolonged { Renewed::Done } else { Renewed::Lost })
    }

    pub(in crate::sql) async fn end_settled(
        &self,
        key: &RecordKey,
        seen: Option<Claimant>,
        settlement: &Settlement,
    ) -> Result<Finished, StoreError> {
        let (id, claimant) = (self.space.id(key), settlement.claimant);
        let what = [Value::Bytes(settlement.payload.as_deref()), time(settlement.retention)];
        let statements = &self.shared.statements;
        self.end((&statements.settle, &statements.settle_as), &what, &id, seen, claimant, |record| {
            record.state == State::Settled && record.claimant == claimant
        })
        .await
    }

    pub(in crate::sql) async fn end_released(
        &self,
        key: &RecordKey,
        seen: Option<Claimant>,
        release: &Release,
    ) -> Result<Finished, StoreError> {
        let (id, claimant) = (self.space.id(key), release.claimant);
        // A released token is issued again, but still names the claimant that released it.
        let done_before = |record: &Record| {
            let ended = matches!(record.state, State::Issued | State::Released) && claimant != Claimant::NONE;
            ended && record.claimant == claimant
        };
        if release.undo {
            let undone = self.undo(&id, seen, release).await?;
            return self.ended(undone, &id, seen, claimant, done_before).await;
        }
        let statements = &self.shared.statements;
        let what = [time(release.keep)];
        self.end((&statements.release, &statements.release_as), &what, &id, seen, claimant, done_before).await
    }

    /// Undoes a claim: a first claim leaves no record, unless the record is a token's.
    async fn undo(&self, id: &[u8], seen: Option<Claimant>, release: &Release) -> Result<u64, StoreError> {
        let (by, of) = (release.claimant.to_bytes(), seen.unwrap_or(release.claimant).to_bytes());
        // On behalf of a runner, only a lapsed claim is undone.
        let own = Value::Flag(seen.is_none());
        let statements = &self.shared.statements;
        let undone = self.change(&statements.undo_first, &[bytes(id), bytes(&of), own]).await?;
        if undone > 0 {
            return Ok(undone);
        }
        let nobody = Caller::NONE.to_bytes();
        let values = [time(release.keep), bytes(&nobody), bytes(&nobody), bytes(&by), bytes(id), bytes(&of), own];
        self.change(&statements.undo, &values).await
    }

    /// Ends a claim in one statement: the claimant's own, or an abandoned one on behalf of its runner. If that changes
    /// nothing, it returns the record that exists.
    async fn end(
        &self,
        (own, in_place): (&Statement, &Statement),
        what: &[Value<'_>],
        id: &[u8],
        seen: Option<Claimant>,
        claimant: Claimant,
        done_before: impl Fn(&Record) -> bool + Send,
    ) -> Result<Finished, StoreError> {
        let (by, of) = (claimant.to_bytes(), seen.unwrap_or(claimant).to_bytes());
        let ended = match seen {
            None => self.change(own, &[what, &[bytes(id), bytes(&of)]].concat()).await?,
            Some(_) => self.change(in_place, &[what, &[bytes(&by), bytes(id), bytes(&of)]].concat()).await?,
        };
        self.ended(ended, id, seen, claimant, done_before).await
    }

    /// Returns the outcome for the number of changed rows.
    async fn ended(
        &self,
        ended: u64,
        id: &[u8],
        seen: Option<Claimant>,
        claimant: Claimant,
        done_before: impl Fn(&Record) -> bool + Send,
    ) -> Result<Finished, StoreError> {
        if ended > 0 {
            self.shared.room.wake(id);
            return Ok(Finished::Done);
        }
        let record = self.record(id).await?;
        // If the reconciliation uses the claimant that was seen, the runner may have ended by itself.
        let own_doing = seen != Some(claimant);
        Ok(match record {
            Some(record) if own_doing && done_before(&record) => Finished::AlreadyDone,
            record => Finished::Refused(record.map(Box::new)),
        })
    }

    /// Returns the record, if it exists.
    pub(in crate::sql) async fn record(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        let rows = self.rows(&self.shared.statements.inspect, &[bytes(id)]).await?;
        match rows.first().map(read::<D>).transpose()? {
            Some(Row::Record(stored)) if stored.is_there() => Ok(Some(stored.into_record())),
            Some(Row::Newer) => Err(newer::<D>()),
            Some(Row::Torn) => Err(torn::<D>()),
            _ => Ok(None),
        }
    }
}
