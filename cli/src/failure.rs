//! Why a verb could not do what it was asked to do, and the exit codes.

use std::{error::Error, fmt};

use serde_json::{Value, json};
use tower_idempotency::{StoreError, store::StoreErrorKind};

/// The exit codes. They are documented in `README.md` and below `--help`.
pub(crate) mod code {
    /// The store could not be reached, or returned an error.
    pub(crate) const STORE: u8 = 1;
    /// The arguments, the URL or a file are wrong; `clap` exits with the same.
    pub(crate) const USAGE: u8 = 2;
    /// There is no such record or message.
    pub(crate) const NOT_FOUND: u8 = 3;
    /// Nothing was changed: the state does not permit it, or nobody has agreed.
    pub(crate) const REFUSED: u8 = 4;
    /// `doctor` has found something that should be set right.
    pub(crate) const WARNING: u8 = 5;
    /// `doctor` has found that records are lost, or that the store cannot work.
    pub(crate) const CRITICAL: u8 = 6;
    /// The change was ended by Ctrl-C. What was done before stays done.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// The reason why a verb has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store could not be reached, or returned an error.
    Store(String),
    /// The arguments, the URL or a file are wrong.
    Usage(String),
    /// There is no such record or message.
    NotFound(String),
    /// The state does not permit it, or nobody has agreed. Nothing was changed.
    Refused(String),
    /// Ctrl-C has ended it between two steps.
    Interrupted(String),
    /// This process could not do its part.
    Setup(String),
}

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Store(_) | Self::Setup(_) => code::STORE,
            Self::Usage(_) => code::USAGE,
            Self::NotFound(_) => code::NOT_FOUND,
            Self::Refused(_) => code::REFUSED,
            Self::Interrupted(_) => code::INTERRUPTED,
        }
    }

    /// Returns the error as `--json` prints it, on standard error.
    pub(crate) fn json(&self) -> Value {
        let kind = match self {
            Self::Store(_) => "store",
            Self::Usage(_) => "usage",
            Self::NotFound(_) => "not_found",
            Self::Refused(_) => "refused",
            Self::Interrupted(_) => "interrupted",
            Self::Setup(_) => "setup",
        };
        json!({ "error": { "kind": kind, "message": self.to_string() } })
    }

    /// Changes the text, such as to take a password out of it.
    pub(crate) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Store(text) => Self::Store(change(text)),
            Self::Usage(text) => Self::Usage(change(text)),
            Self::NotFound(text) => Self::NotFound(change(text)),
            Self::Refused(text) => Self::Refused(change(text)),
            Self::Interrupted(text) => Self::Interrupted(change(text)),
            Self::Setup(text) => Self::Setup(change(text)),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(text)
            | Self::Usage(text)
            | Self::NotFound(text)
            | Self::Refused(text)
            | Self::Interrupted(text)
            | Self::Setup(text) => f.write_str(text),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let mut text = with_sources(&error);
        if error.kind() == StoreErrorKind::Misconfigured && text.contains("table") {
            text.push_str("\n`tower-idempotency migrate` shows what the tables lack");
        }
        Self::Store(text)
    }
}

/// Returns the message of an error with those of its sources, each once.
pub(crate) fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_sources_once() {
        let error = StoreError::new(StoreErrorKind::Unavailable, "PostgreSQL: failed")
            .with_source(std::io::Error::other("connection refused"));
        assert_eq!(Failure::from(error).to_string(), "PostgreSQL: failed: connection refused");
        let error = StoreError::new(StoreErrorKind::Other, "failed: twice").with_source(std::io::Error::other("twice"));
        assert_eq!(Failure::from(error).to_string(), "failed: twice");
    }

    #[test]
    fn each_kind_of_failure_has_its_exit_code_and_its_name() {
        let failures = [
            (Failure::Store("x".into()), 1, "store"),
            (Failure::Setup("x".into()), 1, "setup"),
            (Failure::Usage("x".into()), 2, "usage"),
            (Failure::NotFound("x".into()), 3, "not_found"),
            (Failure::Refused("x".into()), 4, "refused"),
            (Failure::Interrupted("x".into()), 130, "interrupted"),
        ];
        for (failure, code, kind) in failures {
            assert_eq!((failure.code(), &failure.json()["error"]["kind"]), (code, &json!(kind)));
        }
    }
}
