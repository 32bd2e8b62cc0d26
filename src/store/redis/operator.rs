use redis::{Pipeline, Value};

use crate::{
    store::{Cursor, Finished, Operator, Page, Stats, StoreFuture},
    value::{Claimant, Entry, Filter, Record, RecordKey, Release, Settlement, State, StoreError, StoreErrorKind},
};

use super::{
    RedisStore,
    claim::{torn, whole},
    error::Trouble,
    finish::Place,
    line::{Again, said},
    record::{Stored, Unreadable, glance},
    scripts::FORGET,
};

/// How many names a page looks at by one `SCAN`, at least and at most, and how often.
const BATCH: (usize, usize) = (16, 1_000);
const BATCHES: usize = 16;

impl Operator for RedisStore {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        StoreFuture::new(async move {
            let name = self.space.name(key);
            match self.records(&[&name]).await?.pop() {
                Some(Ok(record)) => Ok(record),
                Some(Err(Unreadable::Newer)) => {
                    let newer = "the record is one of a later version of this crate";
                    Err(StoreError::new(StoreErrorKind::Corrupt, newer))
                }
                Some(Err(Unreadable::Torn)) => Err(torn()),
                None => Ok(None),
            }
        })
    }

    /// By `SCAN`: names of other namespaces and other applications are passed over, a bounded number for each page.
    /// Records that cannot be read are left out.
    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        StoreFuture::new(self.page(filter, after, limit))
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.end_with_answer(key, Place::Of(seen), settlement))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.end_without_answer(key, Place::Of(seen), release))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        StoreFuture::new(async move {
            let (name, channel) = (self.space.name(key), self.space.channel());
            let removed = self.line().script(&FORGET, &name, &[&channel], Again::No).await?;
            Ok(whole(removed)? > 0)
        })
    }

    /// Nothing: Redis removes what has expired by itself.
    fn purge(&self, _limit: usize) -> StoreFuture<'_, u64> {
        StoreFuture::ready(Ok(0))
    }

    /// By `SCAN` over all names of the database. Not for a page that is asked for every second.
    fn stats(&self) -> StoreFuture<'_, Stats> {
        StoreFuture::new(self.count())
    }
}

/// What has the name of a record, if anything has.
type Read = Result<Option<Record>, Unreadable>;

impl RedisStore {
    async fn page(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let mut cursor = match after {
            None => 0,
            Some(after) => match after.as_bytes().try_into().map(u64::from_be_bytes) {
                Ok(cursor) => cursor,
                Err(_) => return Ok(Page::default()),
            },
        };
        let mut entries = Vec::new();
        for _ in 0..BATCHES {
            let (next, names) = self.scan(cursor, limit.clamp(BATCH.0, BATCH.1)).await?;
            let names = self.admitted(filter, names).await?;
            let asked: Vec<_> = names.iter().map(|(name, _)| &**name).collect();
            for (read, (_, key)) in self.records(&asked).await?.into_iter().zip(&names) {
                if let Ok(Some(record)) = read
                    && filter.admits(&record)
                {
                    entries.push(Entry::new(key.clone(), record));
                }
            }
            cursor = next;
            if cursor == 0 {
                return Ok(Page::new(entries, None));
            }
            if entries.len() >= limit {
                break;
            }
        }
        Ok(Page::new(entries, Some(Cursor::from_bytes(cursor.to_be_bytes()))))
    }

    async fn count(&self) -> Result<Stats, StoreError> {
        // `SCAN` may show a name twice while the server's table grows or shrinks, so what is told twice is known.
        let (mut stats, mut seen, mut cursor) = (Stats::default(), std::collections::HashSet::new(), 0);
        loop {
            let (next, names) = self.scan(cursor, BATCH.1).await?;
            let names: Vec<_> = names.into_iter().filter(|(name, _)| seen.insert(digest(name))).collect();
            for (state, abandoned) in self.glances(&names).await?.into_iter().flatten() {
                let count = match state {
                    State::Issued => &mut stats.issued,
                    State::Running if abandoned => &mut stats.abandoned,
                    State::Running => &mut stats.running,
                    State::Settled => &mut stats.settled,
                    State::Released => &mut stats.released,
                };
                *count += 1;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(stats);
            }
        }
    }

    /// Names of this namespace's records, out of about `count` names of the database.
    async fn scan(&self, cursor: u64, count: usize) -> Result<(u64, Vec<(Vec<u8>, RecordKey)>), Trouble> {
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(self.space.pattern()).arg("COUNT").arg(count).arg("TYPE").arg("string");
        let Value::Array(answer) = self.line().command(&command, Again::Yes).await? else { return Err(Trouble::Odd) };
        let [Value::BulkString(next), Value::Array(names)] = <[Value; 2]>::try_from(answer).unwrap_or_default() else {
            return Err(Trouble::Odd);
        };
        let next = std::str::from_utf8(&next).ok().and_then(|next| next.parse().ok()).ok_or(Trouble::Odd)?;
        let own = names.into_iter().filter_map(|name| match name {
            Value::BulkString(name) => self.space.key(&name).map(|key| (name, key)),
            _ => None,
        });
        Ok((next, own.collect()))
    }

    /// Those that the filter may let through, found out without reading answers and notes.
    async fn admitted(
        &self,
        filter: Filter,
        names: Vec<(Vec<u8>, RecordKey)>,
    ) -> Result<Vec<(Vec<u8>, RecordKey)>, Trouble> {
        if filter == Filter::All {
            return Ok(names);
        }
        let glances = self.glances(&names).await?;
        let admitted = names.into_iter().zip(glances).filter(|(_, glance)| match (filter, glance) {
            (Filter::State(wanted), Some((state, _))) => *state == wanted,
            (Filter::Abandoned, Some((_, abandoned))) => *abandoned,
            _ => false,
        });
        Ok(admitted.map(|(name, _)| name).collect())
    }

    /// The state of each record, and whether it is abandoned.
    async fn glances(&self, names: &[(Vec<u8>, RecordKey)]) -> Result<Vec<Option<(State, bool)>>, Trouble> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(names.len() * 2);
        for (name, _) in names {
            pipeline.cmd("GETRANGE").arg(name).arg(0).arg(99).cmd("PTTL").arg(name);
        }
        let answers = self.line().pipeline(&pipeline, Again::Yes).await?;
        let glances = answers.chunks_exact(2).map(|pair| match pair {
            [Value::BulkString(head), Value::Int(left)] => glance(head, *left),
            _ => None,
        });
        Ok(glances.collect())
    }

    /// Reads records with all that belongs to them, in one transaction.
    async fn records(&self, names: &[&[u8]]) -> Result<Vec<Read>, Trouble> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(names.len() * 3);
        pipeline.atomic();
        for name in names {
            pipeline.cmd("GET").arg(*name).cmd("PTTL").arg(*name).cmd("PEXPIRETIME").arg(*name);
        }
        let mut answers = self.line().pipeline(&pipeline, Again::Yes).await?.into_iter();
        let mut records = Vec::with_capacity(names.len());
        while let (Some(record), Some(left), Some(expires)) = (answers.next(), answers.next(), answers.next()) {
            let (left, expires) = (whole(left)?, whole(expires)?);
            records.push(match said(record)? {
                Value::BulkString(bytes) => Stored::read(bytes, left).map(|stored| Some(stored.record(expires))),
                _ => Ok(None),
            });
        }
        Ok(records)
    }
}

fn digest(name: &[u8]) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}
