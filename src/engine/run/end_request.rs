//! What the store is asked for at the end of a claim.

use std::time::Duration;

use bytes::Bytes;

use super::RunState;
use crate::{
    engine::Engine,
    store::{Finished, StoreFuture},
    value::{Claimant, Event, RecordKey, Release, Settlement, StoreVerb},
};

/// How a claim is to end.
pub(super) enum EndRequest {
    Settle(Settlement),
    Release(Release),
}

impl EndRequest {
    /// With a payload, or with `None` as a tombstone.
    pub(super) fn settle(claimant: Claimant, payload: Option<Bytes>, retention: Duration) -> Self {
        Self::Settle(Settlement::new(claimant, payload, retention))
    }

    /// Without an answer, so that the next try runs.
    pub(super) fn release(claimant: Claimant, keep: Duration) -> Self {
        Self::Release(Release::new(claimant, keep))
    }

    /// As if the claim had not been.
    pub(super) fn undo(claimant: Claimant, keep: Duration) -> Self {
        Self::Release(Release::undo(claimant, keep))
    }

    /// Leaves the answer out, of which there is one, so that what is to be kept is a tombstone.
    pub(super) fn leave_answer_out(&mut self) -> bool {
        match self {
            Self::Settle(settlement) => settlement.payload.take().is_some(),
            Self::Release(_) => false,
        }
    }

    pub(super) fn verb(&self) -> StoreVerb {
        match self {
            Self::Settle(_) => StoreVerb::Settle,
            Self::Release(_) => StoreVerb::Release,
        }
    }

    pub(super) fn send<'a>(&'a self, engine: &'a Engine, state: &'a RunState) -> StoreFuture<'a, Finished> {
        match self {
            Self::Settle(settlement) => engine.store.settle(&state.key, settlement),
            Self::Release(release) => engine.store.release(&state.key, release),
        }
    }

    /// Returns the event of an end that is recorded.
    pub(super) fn event<'a>(&self, key: &'a RecordKey, after: Duration) -> Event<'a> {
        match self {
            Self::Settle(Settlement { payload, .. }) => {
                let kept = payload.as_ref().map_or(0, Bytes::len);
                Event::Settled { key, tombstone: payload.is_none(), kept, after }
            }
            Self::Release(_) => Event::Released { key, after },
        }
    }
}
