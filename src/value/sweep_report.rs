/// The results of a sweep: how many records, and messages of outboxes, it found, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// Settled with the application's payload. In a dry run: would be.
    pub settled: usize,
    /// Released, so that the next try runs. In a dry run: would be.
    pub released: usize,
    /// Messages of an outbox that were removed unsent. In a dry run: would be.
    pub discarded: usize,
    /// Left for later, because the application decided so or panicked.
    pub left: usize,
    /// Not asked about: another process works on them, they were left too recently, or they are no longer abandoned.
    pub skipped: usize,
    /// Not brought to an end, because the store failed or the runner came back meanwhile.
    pub failed: usize,
}

impl SweepReport {
    /// Returns how many records and messages it found.
    #[must_use]
    pub const fn found(&self) -> usize {
        self.settled + self.released + self.discarded + self.left + self.skipped + self.failed
    }
}
