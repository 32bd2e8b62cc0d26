use crate::{
    store::{Finished, Renewed},
    value::{Claim, Claimant, Record, RecordKey, Release, Settlement, State, StoreError},
};

use super::{
    SqlStore,
    driver::{Driver, Value},
    error::torn,
    line::read,
    statements::Statement,
    stored::Row,
    values::{bytes, lease_and_life, time},
};

impl<D: Driver> SqlStore<D> {
    pub(super) async fn prolong(&self, key: &RecordKey, claim: &Claim) -> Result<Renewed, StoreError> {
        let (id, claimant) = (self.space.id(key), claim.claimant.to_bytes());
        let values = [&lease_and_life(claim)[..], &[bytes(&id), bytes(&claimant)]].concat();
        let prolonged = self.change(&self.shared.statements.renew, &values).await? > 0;
        Ok(if prolonged { Renewed::Done } else { Renewed::Lost })
    }

    pub(super) async fn end_settled(
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

    pub(super) async fn end_released(
        &self,
        key: &RecordKey,
        seen: Option<Claimant>,
        release: &Release,
    ) -> Result<Finished, StoreError> {
        let (id, claimant) = (self.space.id(key), release.claimant);
        let statements = &self.shared.statements;
        self.end((&statements.release, &statements.release_as), &[time(release.keep)], &id, seen, claimant, |record| {
            // A token that was released is issued again, and still knows by whom.
            let released = matches!(record.state, State::Issued | State::Released) && record.attempt > 0;
            released && record.claimant == claimant
        })
        .await
    }

    /// Ends a claim in one statement, its own or an abandoned one in its runner's place; where that changes nothing,
    /// says what is there.
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
        if ended > 0 {
            self.shared.room.wake(id);
            return Ok(Finished::Done);
        }
        let record = self.record(id).await?;
        // Where somebody reconciles under the name that was seen, the runner may have ended by itself.
        let own_doing = seen != Some(claimant);
        Ok(match record {
            Some(record) if own_doing && done_before(&record) => Finished::AlreadyDone,
            record => Finished::Refused(record.map(Box::new)),
        })
    }

    /// The record that is there.
    pub(super) async fn record(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        let rows = self.rows(&self.shared.statements.inspect, &[bytes(id)]).await?;
        match rows.first().map(read::<D>).transpose()? {
            Some(Row::Record(stored)) if stored.is_there() => Ok(Some(stored.into_record())),
            Some(Row::Newer | Row::Torn) => Err(torn::<D>()),
            _ => Ok(None),
        }
    }
}
