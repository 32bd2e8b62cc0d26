//! The operator's verbs, on names that `SCAN` returns.
//!
//! A page visits a bounded number of names, so it may be empty although more follow. `SCAN` may return a name twice
//! while the server's table grows, and misses none that exists all the time. On a cluster the masters are visited one
//! after another; the cursor names the one that the walk is at.

use redis::{Pipeline, Value};

use crate::{
    store::{Cursor, Finished, Page, Stats, StoreAdmin, StoreFuture},
    value::{
        Behalf, Claimant, Entry, Filter, Record, RecordKey, Release, Settlement, State, StoreError, StoreErrorKind,
    },
};

use super::{
    RedisStore,
    claim::{Found, torn, whole},
    connection::{Node, RetryOnDisconnect, said},
    error::CommandError,
    record::{HEAD, Stored, Unreadable, glance},
    scripts::FORGET,
};

/// How many names one `SCAN` of a page visits, at least and at most, and how many scans a page takes.
const BATCH: (usize, usize) = (16, 1_000);
const BATCHES: usize = 16;

impl StoreAdmin for RedisStore {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        StoreFuture::new(async move {
            match self.read(&self.space.name(key)).await?.map(read).transpose() {
                Ok(record) => Ok(record),
                Err(Unreadable::Newer) => {
                    let newer = "the record is one of a later version of this crate";
                    Err(StoreError::new(StoreErrorKind::Corrupt, newer))
                }
                Err(Unreadable::Torn) => Err(torn()),
            }
        })
    }

    /// Uses `SCAN`: names of other namespaces and other applications are skipped, a bounded number for each page.
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
        StoreFuture::new(self.end_with_answer(key, Behalf::Of(seen), settlement))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.end_without_answer(key, Behalf::Of(seen), release))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        StoreFuture::new(async move {
            let name = self.space.name(key);
            let channel = self.channel(&name);
            let removed = self.line().script(&FORGET, &name, &[&channel], RetryOnDisconnect::No).await?;
            Ok(whole(removed)? > 0)
        })
    }

    /// Does nothing: Redis itself removes expired records.
    fn purge(&self, _limit: usize) -> StoreFuture<'_, u64> {
        StoreFuture::ready(Ok(0))
    }

    /// Uses `SCAN` over all names of the database, so do not call it every second.
    fn stats(&self) -> StoreFuture<'_, Stats> {
        StoreFuture::new(self.count())
    }
}

/// The record under a name, if there is one.
type Read = Result<Option<Record>, Unreadable>;

/// A record's name and its key.
type Named = (Vec<u8>, RecordKey);

impl RedisStore {
    /// Collects a page, from the master and the place that the cursor names.
    async fn page(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let masters = self.line().masters().await?;
        let (mut cursor, node) = match after.as_ref().map(position) {
            None => (0, None),
            Some(Some(position)) => position,
            Some(None) => return Ok(Page::default()),
        };
        // If the server is no longer one of them, its records may be on any server: all are listed again.
        let found = masters.iter().position(|master| *master == node);
        cursor = if found.is_some() { cursor } else { 0 };
        let mut left = masters.into_iter().skip(found.unwrap_or(0));
        let mut entries = Vec::new();
        let mut master = left.next();
        for _ in 0..BATCHES {
            let Some(node) = &master else { break };
            let node = node.as_ref();
            let (next, names) = self.scan(node, cursor, limit.clamp(BATCH.0, BATCH.1)).await?;
            let names = self.admitted(node, filter, names).await?;
            for (read, (_, key)) in self.records(node, &names).await?.into_iter().zip(&names) {
                if let Ok(Some(record)) = read
                    && filter.admits(&record)
                {
                    entries.push(Entry::new(key.clone(), record));
                }
            }
            cursor = next;
            if cursor == 0 {
                master = left.next();
            }
            if entries.len() >= limit {
                break;
            }
        }
        Ok(Page::new(entries, master.map(|node| cursor_at(cursor, node.as_ref()))))
    }

    /// Counts the records of this namespace by their states.
    async fn count(&self) -> Result<Stats, StoreError> {
        // `SCAN` may show a name twice while the server's table grows or shrinks, so repeated names are recognised.
        let (mut stats, mut seen) = (Stats::default(), std::collections::HashSet::new());
        for node in self.line().masters().await? {
            let (node, mut cursor) = (node.as_ref(), 0);
            loop {
                let (next, names) = self.scan(node, cursor, BATCH.1).await?;
                let names: Vec<_> = names.into_iter().filter(|(name, _)| seen.insert(digest(name))).collect();
                for (state, abandoned) in self.glances(node, &names).await?.into_iter().flatten() {
                    stats.count(state, abandoned);
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(stats)
    }

    /// Returns the names of this namespace's records, out of about `count` names of the database.
    async fn scan(&self, node: Option<&Node>, cursor: u64, count: usize) -> Result<(u64, Vec<Named>), CommandError> {
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(self.space.pattern()).arg("COUNT").arg(count).arg("TYPE").arg("string");
        let Value::Array(answer) = self.line().command_at(node, &command).await? else { return Err(CommandError::Odd) };
        let [Value::BulkString(next), Value::Array(names)] = <[Value; 2]>::try_from(answer).unwrap_or_default() else {
            return Err(CommandError::Odd);
        };
        let next = std::str::from_utf8(&next).ok().and_then(|next| next.parse().ok()).ok_or(CommandError::Odd)?;
        let own = names.into_iter().filter_map(|name| match name {
            Value::BulkString(name) => self.space.key(&name).map(|key| (name, key)),
            _ => None,
        });
        Ok((next, own.collect()))
    }

    /// Returns the names that the filter may admit, without reading answers and notes.
    async fn admitted(
        &self,
        node: Option<&Node>,
        filter: Filter,
        names: Vec<Named>,
    ) -> Result<Vec<Named>, CommandError> {
        if filter == Filter::All {
            return Ok(names);
        }
        let glances = self.glances(node, &names).await?;
        let admitted = names.into_iter().zip(glances).filter(|(_, glance)| match (filter, glance) {
            (Filter::State(wanted), Some((state, _))) => *state == wanted,
            (Filter::Abandoned, Some((_, abandoned))) => *abandoned,
            _ => false,
        });
        Ok(admitted.map(|(name, _)| name).collect())
    }

    /// Returns the state of each record, and whether it is abandoned.
    async fn glances(&self, node: Option<&Node>, names: &[Named]) -> Result<Vec<Option<(State, bool)>>, CommandError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let last = HEAD - 1;
        let answers = self.steps(node, names.iter().map(|(name, _)| &**name), |pipeline, name| {
            pipeline.cmd("GETRANGE").arg(name).arg(0).arg(last).cmd("PTTL").arg(name);
        });
        let glances = answers.await?.into_iter().map(|answer| match answer {
            Value::Array(pair) => match &*pair {
                [Value::BulkString(head), Value::Int(left)] => glance(head, *left),
                _ => None,
            },
            _ => None,
        });
        Ok(glances.collect())
    }

    /// Reads complete records.
    async fn records(&self, node: Option<&Node>, names: &[Named]) -> Result<Vec<Read>, CommandError> {
        let answers = self.steps(node, names.iter().map(|(name, _)| &**name), |pipeline, name| {
            pipeline.cmd("GET").arg(name).cmd("PTTL").arg(name).cmd("PEXPIRETIME").arg(name);
        });
        answers.await?.into_iter().map(|answer| Ok(Found::read(said(answer)?)?.map(read).transpose())).collect()
    }

    /// Queries each name in one atomic step, in a transaction of its own: on a cluster, a transaction may not span
    /// slots.
    async fn steps<'n>(
        &self,
        node: Option<&Node>,
        names: impl Iterator<Item = &'n [u8]>,
        ask: impl Fn(&mut Pipeline, &'n [u8]),
    ) -> Result<Vec<Value>, CommandError> {
        let (mut pipeline, mut ends) = (Pipeline::new(), Vec::new());
        for name in names {
            ask(pipeline.cmd("MULTI"), name);
            ends.push(pipeline.cmd("EXEC").len() - 1);
        }
        if ends.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = self.line().pipeline_at(node, &pipeline).await?;
        ends.into_iter().map(|end| answers.get_mut(end).map(std::mem::take).ok_or(CommandError::Odd)).collect()
    }
}

/// Reads a complete record with its times.
fn read(found: Found) -> Result<Record, Unreadable> {
    Ok(Stored::read(found.bytes, found.left)?.record(found.expires))
}

/// Returns the cursor of a page: the cursor of `SCAN`, and its server if there are several.
fn cursor_at(cursor: u64, node: Option<&Node>) -> Cursor {
    let node = node.map_or(String::new(), |(host, port)| format!("{port} {host}"));
    Cursor::from_bytes([&cursor.to_be_bytes(), node.as_bytes()].concat())
}

/// Reads a cursor; `None` if it is malformed.
fn position(cursor: &Cursor) -> Option<(u64, Option<Node>)> {
    let (cursor, node) = cursor.as_bytes().split_first_chunk()?;
    let cursor = u64::from_be_bytes(*cursor);
    if node.is_empty() {
        return Some((cursor, None));
    }
    let (port, host) = std::str::from_utf8(node).ok()?.split_once(' ')?;
    Some((cursor, Some((host.to_owned(), port.parse().ok()?))))
}

/// Returns a hash by which `count` recognises a name that it has seen.
fn digest(name: &[u8]) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}
