use crate::sql::outbox::StagedMessage;

/// A message of an outbox that has not been sent for long.
#[derive(Clone, Debug)]
pub struct Unsent {
    pub(super) outgoing: StagedMessage,
    pub(super) dry_run: bool,
}

impl Unsent {
    /// Returns the message, how often it was tried, and when it was staged.
    #[must_use]
    pub fn outgoing(&self) -> &StagedMessage {
        &self.outgoing
    }

    /// Returns whether the answer will have no effect: see [`Reconciler::dry_run`](crate::Reconciler::dry_run).
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}

/// The application's decision about a message that has not been sent for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnsentResolution {
    /// The message can never be sent, or need not be any more: it is removed, and later messages with its key go on.
    Discard,
    /// The message stays: the relay goes on trying, and the application is asked again later.
    Leave,
}
