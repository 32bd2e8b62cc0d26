//! To whose share a record counts.

use crate::value::RecordKey;

use super::Extra;

/// A record that may count to the share of a scope.
pub(in crate::store::memory) trait Scoped {
    /// Returns the number of its namespace.
    fn namespace(&self) -> u32;

    /// Passes the scope to whose share it counts, if any, to `see`: the principal of a token, the scope of another
    /// record.
    fn with_scope<T>(&self, see: impl FnOnce(&str) -> T) -> Option<T>;
}

pub(super) fn scope<T>(extra: Option<&Extra>, key: &[u8], see: impl FnOnce(&str) -> T) -> Option<T> {
    match extra.and_then(|extra| extra.token.as_ref()) {
        Some(token) => token.binding.principal.as_deref().map(see),
        None => RecordKey::from_bytes(key)?.scope().map(see),
    }
}
