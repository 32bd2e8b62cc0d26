//! The store: shards of records, each behind a lock of its own.

use std::{
    hash::BuildHasher,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use http::{HeaderMap, StatusCode};

use super::{
    identity::{Claimant, Fingerprint, Name},
    shard::{KeptHead, Shard},
};
use crate::clock::Paced;

const SHARDS: usize = 64;
const CAPACITY: usize = 4_000_000;

pub(super) struct Store {
    shards: Box<[Padded]>,
    hasher: DefaultHashBuilder,
    clock: Paced,
    retention: u64,
}

/// No two locks share a line of the cache, or one that is fetched with it.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// The place of a claimed record, so that it is not looked up again.
#[derive(Clone, Copy)]
pub(super) struct Place {
    hash: u64,
    slot: u32,
}

pub(super) enum Claimed {
    Granted(Place),
    Kept(Arc<KeptHead>, Bytes),
    Running,
    Mismatch,
    Full,
}

/// When something happens, and until when it is kept.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) now: u64,
    pub(super) retention: u64,
}

impl Store {
    pub(super) fn new(clock: Paced, retention: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Padded(Mutex::default())).collect(),
            hasher: DefaultHashBuilder::default(),
            clock,
            retention,
        }
    }

    pub(super) fn claim(&self, name: &Name, fingerprint: &Fingerprint, claimant: Claimant) -> Claimed {
        let name = name.as_bytes();
        let hash = self.hasher.hash_one(name);
        let span = self.span();
        let mut shard = self.shard(hash);
        shard.expire(span.now);
        if let Some(slot) = shard.find(hash, name) {
            return match shard.claim_again(slot, fingerprint, claimant, span) {
                Ok(()) => Claimed::Granted(Place { hash, slot }),
                Err(refused) => refused,
            };
        }
        if shard.records() >= CAPACITY / SHARDS {
            return Claimed::Full;
        }
        Claimed::Granted(Place { hash, slot: shard.insert(hash, name, fingerprint, claimant, span) })
    }

    /// Whether it was still this claimant's.
    pub(super) fn settle(
        &self,
        place: Place,
        claimant: Claimant,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> bool {
        let span = self.span();
        self.shard(place.hash).settle(place.slot, claimant, (status, headers), body, span)
    }

    #[cold]
    pub(super) fn release(&self, place: Place, claimant: Claimant) {
        self.shard(place.hash).release(place.slot, claimant);
    }

    fn span(&self) -> Span {
        Span { now: self.clock.read(), retention: self.retention }
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        let Padded(shard) = &self.shards[(hash >> 32) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
