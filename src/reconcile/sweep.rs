use super::case::Ended;

/// How many records, and messages of outboxes, a sweep found, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// Settled with what the application said. In a dry run: would be.
    pub settled: usize,
    /// Released, so that the next try runs. In a dry run: would be.
    pub released: usize,
    /// Messages of an outbox that were removed unsent. In a dry run: would be.
    pub discarded: usize,
    /// Left for later, as the application said, or since it panicked.
    pub left: usize,
    /// Not asked about: in another process's hands, left not long enough ago, or no longer abandoned.
    pub skipped: usize,
    /// Not brought to an end, since the store failed, or the runner came back meanwhile.
    pub failed: usize,
}

impl SweepReport {
    pub(super) fn count(&mut self, ended: Ended) {
        *match ended {
            Ended::Settled => &mut self.settled,
            Ended::Released => &mut self.released,
            Ended::Discarded => &mut self.discarded,
            Ended::Left => &mut self.left,
            Ended::Skipped => &mut self.skipped,
            Ended::Failed => &mut self.failed,
        } += 1;
    }
}
