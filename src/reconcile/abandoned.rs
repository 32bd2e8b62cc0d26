use crate::{
    Payload, RecordKey,
    store::{Entry, Record},
    value::{Secret, child_key},
};

/// A record whose runner never came back.
#[derive(Clone, Debug)]
pub struct Abandoned {
    pub(super) entry: Entry,
    pub(super) dry_run: bool,
    pub(super) secret: Option<Secret>,
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

    /// Derives a key for one step of the operation: the same as [`Operation::child_key`](crate::Operation::child_key) in the
    /// run that never came back.
    ///
    /// `None` if the record was begun with a secret that this reconciler was not [given](super::Reconciler::secret).
    #[must_use]
    pub fn child_key(&self, step: &str) -> Option<String> {
        child_key(&self.entry.key, self.entry.record.origin, self.secret.as_ref(), step)
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
    /// It did not, and can no longer: the next try runs.
    Release,
    /// Nobody knows yet: it is asked about again later.
    Leave,
}
