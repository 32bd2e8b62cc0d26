use std::time::Duration;

use tower_idempotency::store::{
    Claimant, Cursor, Filter, Finished, Page, Record, RecordKey, Release, Settlement, State, Stats, StoreAdmin,
    StoreFuture,
};

use super::{Broken, Bug, at_once};

const HOUR: Duration = Duration::from_secs(60 * 60);

impl StoreAdmin for Broken {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        let mut record = at_once(self.model.inspect(&self.key(key)));
        if let Some(record) = &mut record {
            match self.bug {
                Bug::NoTimeLeftShown => record.lease_left = Duration::ZERO,
                Bug::NoLeaseShown => record.lease = Duration::ZERO,
                Bug::LeaseLeftIsTheLease => record.lease = record.lease_left,
                Bug::NoLapseShown => record.lapsed_for = Duration::ZERO,
                Bug::LapseStandsStill => record.lapsed_for = record.lapsed_for.min(Duration::from_millis(1)),
                Bug::AliveIsLapsed => record.lapsed_for += HOUR,
                _ => {}
            }
        }
        StoreFuture::ready(Ok(record))
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        let filter = if self.has(Bug::StateIgnored) { Filter::All } else { filter };
        let mut page = at_once(self.model.list(filter, after, limit));
        match self.bug {
            Bug::FirstPageOnly => page.next = None,
            Bug::PagesSkip if page.next.is_some() => drop(page.entries.pop()),
            Bug::AbandonedUntold => page.entries.iter_mut().for_each(|entry| entry.record.lease_left += HOUR),
            _ => {}
        }
        StoreFuture::ready(Ok(page))
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        let seen = self.before_reconciling(key, seen);
        let outcome = at_once(self.model.settle_as(key, seen, settlement));
        if self.has(Bug::RunnerSettlesTwice) && matches!(outcome, Finished::Done) {
            self.edit(key, |row| row.claimant = seen);
        }
        StoreFuture::ready(Ok(outcome))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        let seen = self.before_reconciling(key, seen);
        let outcome = at_once(self.model.release_as(key, seen, release));
        if self.has(Bug::RunnerReleasesTwice) && matches!(outcome, Finished::Done) {
            self.edit(key, |row| row.claimant = seen);
        }
        StoreFuture::ready(Ok(outcome))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        let key = self.key(key);
        if self.has(Bug::RunningNotForgotten) && self.state(&key) == Some(State::Running) {
            return StoreFuture::ready(Ok(true));
        }
        let forgotten = at_once(self.model.forget(&key));
        StoreFuture::ready(Ok(forgotten && !self.has(Bug::ForgettingSaysNothing)))
    }

    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        let now = self.model.now();
        if self.has(Bug::AbandonedPurged) {
            self.model.rows().retain(|_, row| row.state != State::Running || row.lease_ends > now);
        }
        let more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        StoreFuture::ready(Ok(if self.has(Bug::LimitIgnored) { more } else { 0 }))
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        let mut stats = at_once(self.model.stats());
        if self.has(Bug::AbandonedUncounted) {
            stats.running += std::mem::take(&mut stats.abandoned);
        }
        StoreFuture::ready(Ok(stats))
    }
}

impl Broken {
    fn before_reconciling(&self, key: &RecordKey, seen: Claimant) -> Claimant {
        if self.has(Bug::AliveReconciled) {
            self.edit(key, |row| row.lease_ends = 0);
        }
        let there = self.row(key).map_or(seen, |row| row.claimant);
        if self.has(Bug::UnseenReconciled) { there } else { seen }
    }
}
