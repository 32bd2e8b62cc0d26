//! One shard of the store: records in slots, an index of them, and a queue of what expires.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use hashbrown::HashTable;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        AGE, CONNECTION, CONTENT_LENGTH, DATE, PROXY_AUTHENTICATE, SET_COOKIE, TE, TRANSFER_ENCODING, UPGRADE,
        WWW_AUTHENTICATE,
    },
};

use super::{
    identity::{Claimant, Fingerprint},
    store::{Claimed, Span},
};

/// Milliseconds.
pub(super) const LEASE: u64 = 30_000;

/// How many expired records one claim removes at most, so that none takes long.
const REMOVED_AT_ONCE: usize = 8;

static MARKER: HeaderName = HeaderName::from_static("idempotent-replayed");
static TRUE: HeaderValue = HeaderValue::from_static("true");

#[derive(Default)]
pub(super) struct Shard {
    index: HashTable<Indexed>,
    records: Vec<Record>,
    free: Vec<u32>,
    /// All are kept equally long, so they expire in the order in which they were settled.
    queue: VecDeque<(u64, u32)>,
    /// Most answers have the head of the one before.
    last_head: Option<Arc<KeptHead>>,
}

#[derive(Clone, Copy)]
struct Indexed {
    hash: u32,
    slot: u32,
}

struct Record {
    state: State,
    hash: u32,
    name_length: u16,
    fingerprint: Fingerprint,
    claimant: Claimant,
    /// Until when a running record is its claimant's, and a settled one is kept.
    until: u64,
    /// The name, and the answer's body behind it.
    text: Bytes,
    head: Option<Arc<KeptHead>>,
}

#[derive(PartialEq)]
enum State {
    Free,
    Running,
    Settled,
}

impl Shard {
    pub(super) fn records(&self) -> usize {
        self.records.len() - self.free.len()
    }

    pub(super) fn expire(&mut self, now: u64) {
        if self.queue.front().is_some_and(|(due, _)| *due <= now) {
            self.remove_expired(now);
        }
    }

    fn remove_expired(&mut self, now: u64) {
        for _ in 0..REMOVED_AT_ONCE {
            let Some((_, slot)) = self.queue.pop_front_if(|(due, _)| *due <= now) else { return };
            let record = &self.records[slot as usize];
            // The slot may have been taken over since.
            if record.state == State::Settled && record.until <= now {
                self.remove(slot);
            }
        }
    }

    pub(super) fn find(&self, hash: u64, name: &[u8]) -> Option<u32> {
        let hash = hash as u32;
        let is = |entry: &Indexed| entry.hash == hash && self.records[entry.slot as usize].name() == name;
        self.index.find(spread(hash), is).map(|entry| entry.slot)
    }

    /// Takes over a record whose time is up, and otherwise says why not.
    pub(super) fn claim_again(
        &mut self,
        slot: u32,
        fingerprint: &Fingerprint,
        claimant: Claimant,
        span: Span,
    ) -> Result<(), Claimed> {
        let record = &mut self.records[slot as usize];
        if record.until > span.now {
            return Err(match &record.head {
                _ if record.fingerprint != *fingerprint => Claimed::Mismatch,
                Some(head) => Claimed::Kept(head.clone(), record.text.slice(usize::from(record.name_length)..)),
                None => Claimed::Running,
            });
        }
        record.text.truncate(usize::from(record.name_length));
        record.head = None;
        record.state = State::Running;
        record.fingerprint = *fingerprint;
        record.claimant = claimant;
        record.until = span.now + LEASE;
        Ok(())
    }

    pub(super) fn insert(
        &mut self,
        hash: u64,
        name: &[u8],
        fingerprint: &Fingerprint,
        claimant: Claimant,
        span: Span,
    ) -> u32 {
        let hash = hash as u32;
        let record = Record {
            state: State::Running,
            hash,
            name_length: name.len() as u16,
            fingerprint: *fingerprint,
            claimant,
            until: span.now + LEASE,
            text: Bytes::copy_from_slice(name),
            head: None,
        };
        let slot = if let Some(slot) = self.free.pop() {
            self.records[slot as usize] = record;
            slot
        } else {
            self.records.push(record);
            (self.records.len() - 1) as u32
        };
        self.index.insert_unique(spread(hash), Indexed { hash, slot }, |entry| spread(entry.hash));
        slot
    }

    pub(super) fn settle(
        &mut self,
        slot: u32,
        claimant: Claimant,
        (status, headers): (StatusCode, &HeaderMap),
        body: &[u8],
        span: Span,
    ) -> bool {
        let Some(record) = self.records.get_mut(slot as usize) else { return false };
        if record.state != State::Running || record.claimant != claimant {
            return false;
        }
        let head = match &self.last_head {
            Some(head) if head.is_of(status, headers) => head.clone(),
            _ => self.last_head.insert(Arc::new(KeptHead::new(status, headers))).clone(),
        };
        let mut text = Vec::with_capacity(record.text.len() + body.len());
        text.extend_from_slice(&record.text);
        text.extend_from_slice(body);
        record.text = text.into();
        record.head = Some(head);
        record.state = State::Settled;
        record.until = span.now + span.retention;
        self.queue.push_back((record.until, slot));
        true
    }

    pub(super) fn release(&mut self, slot: u32, claimant: Claimant) {
        let of_claimant = |record: &Record| record.state == State::Running && record.claimant == claimant;
        if self.records.get(slot as usize).is_some_and(of_claimant) {
            self.remove(slot);
        }
    }

    fn remove(&mut self, slot: u32) {
        let record = &mut self.records[slot as usize];
        record.state = State::Free;
        record.text = Bytes::new();
        record.head = None;
        if let Ok(entry) = self.index.find_entry(spread(record.hash), |entry| entry.slot == slot) {
            entry.remove();
        }
        self.free.push(slot);
    }
}

impl Record {
    fn name(&self) -> &[u8] {
        &self.text[..usize::from(self.name_length)]
    }
}

/// The table takes its tags from the upper bits, which the index does not keep.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// Status and headers of an answer, as its replays have them.
pub(super) struct KeptHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

impl KeptHead {
    #[cold]
    fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        // With room for the marker and for what the router adds to each copy.
        let mut kept = HeaderMap::with_capacity(headers.len() + 3);
        kept.extend(
            headers.iter().filter(|(name, _)| is_kept(name)).map(|(name, value)| (name.clone(), value.clone())),
        );
        kept.insert(&MARKER, TRUE.clone());
        Self { status, headers: kept }
    }

    fn is_of(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let theirs = headers.iter().filter(|(name, _)| is_kept(name));
        self.status == status && theirs.eq(self.headers.iter().filter(|(name, _)| **name != MARKER))
    }
}

/// Whether a replay has the header too.
fn is_kept(name: &HeaderName) -> bool {
    static OF_ONE_ANSWER: [HeaderName; 10] = [
        CONNECTION,
        TRANSFER_ENCODING,
        UPGRADE,
        TE,
        CONTENT_LENGTH,
        DATE,
        AGE,
        SET_COOKIE,
        WWW_AUTHENTICATE,
        PROXY_AUTHENTICATE,
    ];
    !OF_ONE_ANSWER.contains(name) && !name.as_str().starts_with("access-control-")
}
