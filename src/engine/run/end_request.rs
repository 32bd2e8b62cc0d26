//! What the store is asked for at the end of a claim.

use std::time::Duration;

use bytes::Bytes;

use super::RunState;
use crate::{
    engine::Engine,
    store::{Finished, StoreFuture},
    value::{Claimant, NotKept, Release, Settlement, StoreVerb},
};

/// How a claim is to end.
pub(super) enum EndRequest {
    /// The reason says why there is no payload; `None` if there is one.
    Settle(Settlement, Option<NotKept>),
    Release(Release),
}

impl EndRequest {
    /// With a payload, or as a tombstone.
    pub(super) fn settle(claimant: Claimant, payload: Result<Bytes, NotKept>, retention: Duration) -> Self {
        let (payload, not_kept) = match payload {
            Ok(payload) => (Some(payload), None),
            Err(why) => (None, Some(why)),
        };
        Self::Settle(Settlement::new(claimant, payload, retention), not_kept)
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
            Self::Settle(settlement, not_kept) => {
                let had_one = settlement.payload.take().is_some();
                if had_one {
                    *not_kept = Some(NotKept::RefusedByStore);
                }
                had_one
            }
            Self::Release(_) => false,
        }
    }

    pub(super) fn verb(&self) -> StoreVerb {
        match self {
            Self::Settle(..) => StoreVerb::Settle,
            Self::Release(_) => StoreVerb::Release,
        }
    }

    pub(super) fn send<'a>(&'a self, engine: &'a Engine, state: &'a RunState) -> StoreFuture<'a, Finished> {
        match self {
            Self::Settle(settlement, _) => engine.store.settle(&state.key, settlement),
            Self::Release(release) => engine.store.release(&state.key, release),
        }
    }

    /// Reports that the end is recorded.
    pub(super) fn report(&self, engine: &Engine, state: &RunState) {
        match self {
            Self::Settle(settlement, not_kept) => {
                state.report_settled(engine, settlement.payload.as_ref(), *not_kept);
            }
            Self::Release(_) => state.report_released(engine),
        }
    }
}
