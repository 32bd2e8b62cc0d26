//! Fields that few records have, apart from the block, so that the others do without their room.

use bytes::Bytes;

use crate::value::Binding;

/// The fields that few records have.
#[derive(Default)]
pub(in crate::store::memory) struct Extra {
    /// The claim's note. It is copied, since a slice would keep the whole buffer that the request was read into.
    pub(super) note: Bytes,
    /// The token, if the record is one.
    pub(super) token: Option<TokenFields>,
    /// A payload that does not fit into a block.
    pub(super) payload: Option<Bytes>,
}

/// What makes a record a token's.
#[derive(Clone)]
pub(super) struct TokenFields {
    /// Its purpose and principal.
    pub(super) binding: Binding,
    /// The first expiry.
    pub(super) expires: u64,
}

impl Extra {
    pub(super) fn bytes(&self) -> usize {
        let token = self.token.as_ref().map_or(0, TokenFields::bytes);
        self.note.len() + self.payload.as_ref().map_or(0, Bytes::len) + token
    }
}

impl TokenFields {
    pub(super) fn bytes(&self) -> usize {
        self.binding.purpose.len() + self.binding.principal.as_ref().map_or(0, |principal| principal.len())
    }
}
