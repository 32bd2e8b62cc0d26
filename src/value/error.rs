use std::{borrow::Cow, error::Error, fmt};

/// Why a text cannot serve as a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is empty or consists of blanks.
    Empty,
    /// The text is longer than 255 bytes.
    TooLong,
    /// The text has a control character in it.
    ControlCharacter,
    /// The key is not text in the form that its place requires.
    Malformed(Cow<'static, str>),
    /// The key occurs more than once.
    Repeated,
}

impl KeyError {
    /// Creates the error for a key that is not in the form that its place requires; `what` states what is wrong with
    /// it.
    ///
    /// The text reaches the client, so it should not quote the key.
    pub fn malformed(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed(what.into())
    }

    /// Returns the description of the error for the part of a request that is called `part`.
    pub(crate) fn told_of(&self, part: &str) -> Cow<'static, str> {
        let what = match self {
            Self::Empty => "is empty or blank",
            Self::TooLong => "is longer than 255 bytes",
            Self::ControlCharacter => "has a control character in it",
            Self::Malformed(what) => return what.clone(),
            Self::Repeated => "is there more than once",
        };
        format!("the {part} {what}").into()
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told_of("key"))
    }
}

impl Error for KeyError {}

/// The kind of a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store cannot be reached, or refuses for now.
    Unavailable,
    /// The store did not answer in time. The call may have taken effect.
    Timeout,
    /// The store has no room for another record. Nothing was changed.
    Full,
    /// The scope of the key holds as many records as it may. Nothing was changed.
    TooManyKeys,
    /// The value to be kept is larger than the store takes, now and later. Nothing was changed.
    TooLarge,
    /// The store refuses for good: a wrong password, a missing table, a version that is too old.
    Misconfigured,
    /// The data in the store cannot be read.
    Corrupt,
    /// The value to be kept is malformed: a text is blank, too long or has a control character in it.
    Invalid,
    /// Anything else.
    Other,
}

/// The error of a store that could not do what it was asked to do.
///
/// Expected outcomes, such as a claim that was lost, are values and not errors.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    without_effect: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// Creates an error of a kind, with a message for operators. The message must hold no key and no secret.
    pub fn new(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let without_effect =
            matches!(kind, StoreErrorKind::Full | StoreErrorKind::TooManyKeys | StoreErrorKind::TooLarge);
        Self { kind, message: message.into(), without_effect, source: None }
    }

    /// Adds the driver's error as the source.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks the call as known not to have taken effect: it was never sent, or it was refused.
    ///
    /// After any other error of a claim, the layers take care of what the claim may have left behind.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.without_effect = true;
        self
    }

    /// Returns whether the call is known not to have taken effect. This is so for errors of the kinds
    /// [`Full`](StoreErrorKind::Full), [`TooManyKeys`](StoreErrorKind::TooManyKeys) and
    /// [`TooLarge`](StoreErrorKind::TooLarge).
    #[must_use]
    pub fn is_without_effect(&self) -> bool {
        self.without_effect
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns whether the same call may succeed a little later. This is so for all kinds but those that last.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        use StoreErrorKind::{Corrupt, Invalid, Misconfigured, TooLarge};

        !matches!(self.kind, Misconfigured | Corrupt | TooLarge | Invalid)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_error_keeps_its_source() {
        let error = StoreError::new(StoreErrorKind::Unavailable, "no connection").with_source("refused");
        assert!(error.is_temporary());
        assert_eq!(error.to_string(), "no connection");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("refused"));
        assert!(!StoreError::new(StoreErrorKind::Corrupt, "torn").is_temporary());
        assert!(!StoreError::new(StoreErrorKind::Invalid, "a blank").is_temporary());
    }
}
