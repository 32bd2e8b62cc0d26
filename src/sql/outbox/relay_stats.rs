//! The results of a relay.

/// The results of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayStats {
    /// Messages that were sent and marked as sent.
    pub sent: u64,
    /// Messages that were not sent, or not in time; they are tried again.
    pub failed: u64,
    /// Messages that took so long that another relay has taken them over.
    pub overtaken: u64,
}

impl RelayStats {
    pub(super) fn all(self) -> u64 {
        self.sent + self.failed + self.overtaken
    }

    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.failed += other.failed;
        self.overtaken += other.overtaken;
    }
}
