use std::time::Duration;

/// How an answer of the handler is kept, if the handler decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    /// Not kept: the next try runs.
    No,
    /// Kept for this long, whatever its status.
    For(Duration),
}

/// The handler's decisions about its own answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandlerDirectives {
    pub(crate) retain: Option<Retain>,
    pub(crate) stream: bool,
    /// Whether something outside may know of the operation.
    pub(crate) began: bool,
}
