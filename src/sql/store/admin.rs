//! The operator's verbs.
//!
//! A page is a range of the primary key that begins behind the last id of the page before, so a walk neither repeats
//! nor misses a record that stays.

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
    },
    store::{Cursor, Finished, Page, Stats, StoreAdmin, StoreFuture},
    value::{Behalf, Claimant, Entry, Filter, Record, RecordKey, Release, Settlement, StoreError, StoreErrorKind},
};

use super::{
    record_row::{ID, RecordRow, word},
    retry::{read, unreadable},
    values::bytes,
};

/// The most records of one page, whatever the requested limit is.
const LONGEST_PAGE: usize = 1000;

impl<D: SqlDatabase> StoreAdmin for SqlStore<D> {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        StoreFuture::new(async move { self.record(&self.space.id(key)).await })
    }

    /// Returns a page of at most a thousand entries.
    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        StoreFuture::new(self.page(filter, after, limit.clamp(1, LONGEST_PAGE)))
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.settle_record(key, Behalf::Of(seen), settlement))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.release_record(key, Behalf::Of(seen), release))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        StoreFuture::new(async move {
            let id = self.space.id(key);
            let found = self.change(&self.shared.statements.forget, &[bytes(&id)]).await? > 0;
            self.shared.waiters.wake(&id);
            Ok(found)
        })
    }

    /// Looks for keys first, and then removes by key, fifty at a time, so that it locks no live record.
    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        StoreFuture::new(self.remove_expired(limit, false))
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        StoreFuture::new(self.count())
    }
}

impl<D: SqlDatabase> SqlStore<D> {
    async fn page(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let [before, behind] = self.space.bounds();
        let from = match &after {
            None => &before[..],
            Some(cursor) if self.space.key(cursor.as_bytes()).is_some() => cursor.as_bytes(),
            Some(_) => {
                let message = "the cursor is none of this store's";
                return Err(StoreError::new(StoreErrorKind::Other, message).without_effect());
            }
        };
        let statements = &self.shared.statements;
        let (statement, state) = match filter {
            Filter::All => (&statements.list, None),
            Filter::State(state) => (&statements.list_state, Some(Value::Text(Some(word(state))))),
            Filter::Abandoned => (&statements.list_abandoned, None),
        };
        let mut values = vec![bytes(from), bytes(&behind)];
        values.extend(state);
        values.push(number(limit));
        let rows = self.rows(statement, &values).await?;
        let (mut entries, mut last) = (Vec::new(), None);
        for row in &rows {
            let id = D::bytes(row, ID).map_err(unreadable::<D>)?.unwrap_or_default();
            // A record of a later version exists, but cannot be shown.
            if let (Some(key), RecordRow::Record(stored)) = (self.space.key(&id), read::<D>(row)?) {
                entries.push(Entry::new(key, stored.into_record()));
            }
            last = Some(id);
        }
        Ok(Page::new(entries, last.filter(|_| rows.len() == limit).map(Cursor::from_bytes)))
    }

    async fn count(&self) -> Result<Stats, StoreError> {
        let [before, behind] = self.space.bounds();
        let rows = self.rows(&self.shared.statements.stats, &[bytes(&before), bytes(&behind)]).await?;
        let mut stats = Stats::default();
        for row in &rows {
            let (standing, count) =
                (D::text(row, 0).map_err(unreadable::<D>)?, D::int(row, 1).map_err(unreadable::<D>)?);
            let place = match standing.as_deref() {
                Some("issued") => &mut stats.issued,
                Some("running") => &mut stats.running,
                Some("abandoned") => &mut stats.abandoned,
                Some("settled") => &mut stats.settled,
                Some("released") => &mut stats.released,
                _ => continue,
            };
            *place = count.unwrap_or(0).unsigned_abs();
        }
        Ok(stats)
    }
}

fn number(number: usize) -> Value<'static> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
