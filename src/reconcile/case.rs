use super::{Resolution, SweepReport};
use crate::{
    store::{Entry, RecordKey},
    value::{Digest, hex},
};

/// Where the claims of reconcilers are kept, beside the records that they are about.
const ROUTE: &str = "tower-idempotency/reconcile";

/// How one record ended, for this sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordResult {
    Settled,
    Released,
    #[cfg_attr(not(feature = "_sql"), expect(dead_code, reason = "outboxes are in databases"))]
    Discarded,
    Left,
    Skipped,
    Failed,
}

impl RecordResult {
    /// Returns how a record would end.
    pub(super) fn of(resolution: &Resolution) -> Self {
        match resolution {
            Resolution::Settle(_) => Self::Settled,
            Resolution::Release => Self::Released,
            Resolution::Leave => Self::Left,
        }
    }

    pub(super) fn count_in(self, sweep: &mut SweepReport) {
        *match self {
            Self::Settled => &mut sweep.settled,
            Self::Released => &mut sweep.released,
            Self::Discarded => &mut sweep.discarded,
            Self::Left => &mut sweep.left,
            Self::Skipped => &mut sweep.skipped,
            Self::Failed => &mut sweep.failed,
        } += 1;
    }
}

/// Returns whether a record is a reconciler's own claim.
pub(super) fn is_own(key: &RecordKey) -> bool {
    key.route() == ROUTE
}

/// Returns the name of what one process at a time works on: a record under one claimant. `None` is not to be expected.
pub(super) fn claim_key(entry: &Entry) -> Option<RecordKey> {
    let mut digest = Digest::new();
    digest.part(entry.key.as_bytes());
    digest.part(&entry.record.claimant.to_bytes());
    RecordKey::new(ROUTE, None, &hex(&digest.finish())).ok()
}

/// Returns the same name for a message of an outbox.
#[cfg(feature = "_sql")]
pub(super) fn message_claim_key(id: &str) -> Option<RecordKey> {
    let mut digest = Digest::new();
    digest.part(b"outbox");
    digest.part(id.as_bytes());
    RecordKey::new(ROUTE, None, &hex(&digest.finish())).ok()
}
