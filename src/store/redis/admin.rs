//! The operator's verbs, on names that `SCAN` returns.
//!
//! A page visits a bounded number of names, so it may be empty although more follow. `SCAN` may return a name twice
//! while the server's table grows, and misses none that exists all the time. On a cluster the masters are visited one
//! after another; the cursor names the one that the walk is at.

use redis::{Pipeline, Value};

use crate::{
    store::{Cursor, Finished, Page, Stats, StoreAdmin, StoreFuture, support::bytes::DecodeError},
    value::{
        Behalf, Claimant, Entry, Filter, Record, RecordKey, Release, Settlement, State, StoreError, StoreErrorKind,
    },
};

use super::{
    RedisStore,
    command::Argument,
    connection::{RetryOnDisconnect, ServerAddress, server_reply},
    error::CommandError,
    record::{EncodedRecord, HEAD, decode_summary},
    reply::{RawRecord, corrupt, expect_int},
    scripts::FORGET,
};

/// How many names one `SCAN` of a page visits, at least and at most, and how many scans a page takes.
const BATCH: (usize, usize) = (16, 1_000);
const BATCHES: usize = 16;

impl StoreAdmin for RedisStore {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        StoreFuture::new(async move {
            match self.read(Argument::Joined(&self.prefix.parts(key))).await?.map(read).transpose() {
                Ok(record) => Ok(record),
                Err(DecodeError::Newer) => {
                    let newer = "the record is one of a later version of this crate";
                    Err(StoreError::new(StoreErrorKind::Corrupt, newer))
                }
                Err(DecodeError::Corrupt) => Err(corrupt()),
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
        StoreFuture::new(self.settle_record(key, Behalf::Of(seen), settlement))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.release_record(key, Behalf::Of(seen), release))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        StoreFuture::new(async move {
            let parts = self.prefix.parts(key);
            let name = Argument::Joined(&parts);
            let channel = self.channel(name);
            let removed =
                self.transport().script(&FORGET, name, &[Argument::Bytes(&channel)], RetryOnDisconnect::No).await?;
            Ok(expect_int(removed)? > 0)
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
type ReadResult = Result<Option<Record>, DecodeError>;

/// A record's name and its key.
type NamedKey = (Vec<u8>, RecordKey);

impl RedisStore {
    /// Collects a page, from the master and the place that the cursor names.
    async fn page(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let masters = self.transport().masters().await?;
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
            let names = self.matching_names(node, filter, names).await?;
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
        for node in self.transport().masters().await? {
            let (node, mut cursor) = (node.as_ref(), 0);
            loop {
                let (next, names) = self.scan(node, cursor, BATCH.1).await?;
                let names: Vec<_> = names.into_iter().filter(|(name, _)| seen.insert(digest(name))).collect();
                for (state, abandoned) in self.summaries(node, &names).await?.into_iter().flatten() {
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
    async fn scan(
        &self,
        node: Option<&ServerAddress>,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<NamedKey>), CommandError> {
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(self.prefix.pattern()).arg("COUNT").arg(count).arg("TYPE").arg("string");
        let Value::Array(answer) = self.transport().command_at(node, &command).await? else {
            return Err(CommandError::UnexpectedReply);
        };
        let [Value::BulkString(next), Value::Array(names)] = <[Value; 2]>::try_from(answer).unwrap_or_default() else {
            return Err(CommandError::UnexpectedReply);
        };
        let next =
            std::str::from_utf8(&next).ok().and_then(|next| next.parse().ok()).ok_or(CommandError::UnexpectedReply)?;
        let own = names.into_iter().filter_map(|name| match name {
            Value::BulkString(name) => self.prefix.key(&name).map(|key| (name, key)),
            _ => None,
        });
        Ok((next, own.collect()))
    }

    /// Returns the names that the filter may admit, without reading answers and notes.
    async fn matching_names(
        &self,
        node: Option<&ServerAddress>,
        filter: Filter,
        names: Vec<NamedKey>,
    ) -> Result<Vec<NamedKey>, CommandError> {
        if filter == Filter::All {
            return Ok(names);
        }
        let summaries = self.summaries(node, &names).await?;
        let matching = names.into_iter().zip(summaries).filter(|(_, summary)| match (filter, summary) {
            (Filter::State(wanted), Some((state, _))) => *state == wanted,
            (Filter::Abandoned, Some((_, abandoned))) => *abandoned,
            _ => false,
        });
        Ok(matching.map(|(name, _)| name).collect())
    }

    /// Returns the state of each record, and whether it is abandoned.
    async fn summaries(
        &self,
        node: Option<&ServerAddress>,
        names: &[NamedKey],
    ) -> Result<Vec<Option<(State, bool)>>, CommandError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let last = HEAD - 1;
        let answers = self.transactions(node, names.iter().map(|(name, _)| &**name), |pipeline, name| {
            pipeline.cmd("GETRANGE").arg(name).arg(0).arg(last).cmd("PTTL").arg(name);
        });
        let summaries = answers.await?.into_iter().map(|answer| match answer {
            Value::Array(pair) => match &*pair {
                [Value::BulkString(head), Value::Int(left)] => decode_summary(head, *left),
                _ => None,
            },
            _ => None,
        });
        Ok(summaries.collect())
    }

    /// Reads complete records.
    async fn records(&self, node: Option<&ServerAddress>, names: &[NamedKey]) -> Result<Vec<ReadResult>, CommandError> {
        let answers = self.transactions(node, names.iter().map(|(name, _)| &**name), |pipeline, name| {
            pipeline.cmd("GET").arg(name).cmd("PTTL").arg(name).cmd("PEXPIRETIME").arg(name);
        });
        answers
            .await?
            .into_iter()
            .map(|answer| Ok(RawRecord::read(server_reply(answer)?)?.map(read).transpose()))
            .collect()
    }

    /// Queries each name in one atomic step, in a transaction of its own: on a cluster, a transaction may not span
    /// slots.
    async fn transactions<'n>(
        &self,
        node: Option<&ServerAddress>,
        names: impl Iterator<Item = &'n [u8]>,
        add_commands: impl Fn(&mut Pipeline, &'n [u8]),
    ) -> Result<Vec<Value>, CommandError> {
        let (mut pipeline, mut ends) = (Pipeline::new(), Vec::new());
        for name in names {
            add_commands(pipeline.cmd("MULTI"), name);
            ends.push(pipeline.cmd("EXEC").len() - 1);
        }
        if ends.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = self.transport().pipeline_at(node, &pipeline).await?;
        ends.into_iter()
            .map(|end| answers.get_mut(end).map(std::mem::take).ok_or(CommandError::UnexpectedReply))
            .collect()
    }
}

/// Reads a complete record with its times.
fn read(found: RawRecord) -> Result<Record, DecodeError> {
    Ok(EncodedRecord::read(found.bytes, found.left)?.record(found.expires))
}

/// Returns the cursor of a page: the cursor of `SCAN`, and its server if there are several.
fn cursor_at(cursor: u64, node: Option<&ServerAddress>) -> Cursor {
    let node = node.map_or(String::new(), |(host, port)| format!("{port} {host}"));
    Cursor::from_bytes([&cursor.to_be_bytes(), node.as_bytes()].concat())
}

/// Reads a cursor; `None` if it is malformed.
fn position(cursor: &Cursor) -> Option<(u64, Option<ServerAddress>)> {
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
