use super::Payload;
use crate::{
    store::{Entry, Record, RecordKey},
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
    /// Returns the name of the operation: route, scope and key.
    #[must_use]
    pub fn key(&self) -> &RecordKey {
        &self.entry.key
    }

    /// Returns the record in the store: the attempt, when it began, the note.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.entry.record
    }

    /// Derives a key for one step of the operation: the same as [`Operation::child_key`](crate::Operation::child_key)
    /// in the run that never came back.
    ///
    /// Returns `None` if the record was begun with a secret that this reconciler was not
    /// [given](crate::Reconciler::secret).
    #[must_use]
    pub fn child_key(&self, step: &str) -> Option<String> {
        child_key(&self.entry.key, self.entry.record.origin, self.secret.as_ref(), step)
    }

    /// Returns whether the answer will have no effect: see [`Reconciler::dry_run`](crate::Reconciler::dry_run).
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}

/// The application's decision about an abandoned record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// The operation took effect: duplicates receive this payload.
    Settle(Payload),
    /// The operation did not take effect, and can no longer: the next try runs.
    Release,
    /// The outcome is not known yet: the application is asked again later.
    Leave,
}
