use std::{error::Error, fmt};

use crate::value::Refusal;

/// The reason why a [`run`](crate::Once::run) returned no value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError<E> {
    /// The function ran and failed with this error.
    Failed(E),
    /// The function did not run. For an RPC, [`Refusal::status`] is the HTTP status that fits.
    Refused(Refusal),
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for RunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => error.source(),
            Self::Refused(_) => None,
        }
    }
}
