//! What an edge asks the engine for.

use std::time::Duration;

use super::Party;
use crate::value::{Claim, RecordKey};

/// One operation that is to run: its key, its claim, and what holds until the claim is granted.
pub(crate) struct ClaimRequest {
    pub(crate) key: RecordKey,
    pub(crate) claim: Claim,
    /// The party whose bounds it counts against.
    pub(crate) party: Party,
    /// How long it waits while another run holds the key.
    pub(crate) wait: Duration,
    /// The size of the body that is held in memory while it waits, in bytes.
    pub(crate) body: usize,
}

impl ClaimRequest {
    /// Creates the request of an operation without a body, which counts for its scope, or for the layer whose address
    /// this is.
    pub(crate) fn new(key: RecordKey, claim: Claim, wait: Duration, layer: usize) -> Self {
        let party = if key.scope().is_some() { Party::Scope } else { Party::Layer(layer) };
        Self { key, claim, party, wait, body: 0 }
    }
}
