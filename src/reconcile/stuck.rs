use crate::store::StagedMessage;

/// A message of an outbox that was not sent for long.
#[derive(Clone, Debug)]
pub struct Unsent {
    pub(super) outgoing: StagedMessage,
    pub(super) dry_run: bool,
}

impl Unsent {
    /// The message, how often it was tried, and when it was staged.
    #[must_use]
    pub fn outgoing(&self) -> &StagedMessage {
        &self.outgoing
    }

    /// Whether nothing will come of the answer: see [`Reconciler::dry_run`](super::Reconciler::dry_run).
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}

/// What the application says about a message that was not sent for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnsentResolution {
    /// It can never be sent, or need not be any more: it is removed, and its key goes on.
    Discard,
    /// The relay goes on trying, and it is asked about again later.
    Leave,
}
