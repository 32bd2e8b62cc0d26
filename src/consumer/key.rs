use crate::value::KeyError;

/// The types that a closure for the key of a message may return.
///
/// `None` is a message without a key. The rules for keys apply: 1 to 255 bytes, no control characters, not blank.
pub trait IntoKey {
    /// Returns the key, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the message has a key that is invalid; the message is rejected.
    fn into_key(self) -> Result<Option<String>, KeyError>;
}

impl IntoKey for String {
    fn into_key(self) -> Result<Option<String>, KeyError> {
        Ok(Some(self))
    }
}

impl IntoKey for Option<String> {
    fn into_key(self) -> Result<Option<String>, KeyError> {
        Ok(self)
    }
}

impl<K: IntoKey> IntoKey for Result<K, KeyError> {
    fn into_key(self) -> Result<Option<String>, KeyError> {
        self?.into_key()
    }
}
