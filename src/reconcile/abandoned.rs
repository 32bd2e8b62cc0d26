use crate::{
    Payload, RecordKey,
    store::{Entry, Record},
};

/// A record whose runner never came back.
#[derive(Clone, Debug)]
pub struct Abandoned {
    pub(super) entry: Entry,
    pub(super) dry_run: bool,
}

impl Abandoned {
    /// Which operation it is: route, scope and key.
    #[must_use]
    pub fn key(&self) -> &RecordKey {
        &self.entry.key
    }

    /// What the store knows of it: the attempt, when it began, the note.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.entry.record
    }

    /// Whether nothing will come of the answer: see [`Reconciler::dry_run`](super::Reconciler::dry_run).
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}

/// What the application says about an abandoned record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// It took effect: duplicates get this.
    Settle(Payload),
    /// It did not: the next try runs.
    Release,
    /// Nobody knows yet: it is asked about again later.
    Leave,
}
