//! Why a handler has no transaction.

use std::{error::Error, fmt};

/// The reason why there is no transaction to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoTransaction {
    /// The request did not pass a layer in transaction mode, or was let through unprotected.
    NoLayer,
    /// The layer's store is in a database of another kind.
    OtherDatabase,
    /// The transaction is taken: by another extractor of this handler, or by code that the handler has passed it to.
    Taken,
    /// The handler has answered, and the transaction has ended.
    Ended,
    /// The request is a duplicate that [passes through](crate::OnDuplicate::PassThrough) and may only read.
    Duplicate,
}

impl fmt::Display for NoTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLayer => {
                "no transaction: this request has not come through `.layer(IdempotencyLayer::transactional(..))`, or \
                 was let through unprotected"
            }
            Self::OtherDatabase => "the transaction is one of another database than the handler asks for",
            Self::Taken => "the transaction is taken already",
            Self::Ended => "the transaction has ended with the handler's answer",
            Self::Duplicate => {
                "no transaction: this request is a duplicate that passes through, and nothing is recorded for it. Ask \
                 `Operation::is_duplicate` before `Operation::transaction`, in cell of the extractor `Tx`"
            }
        })
    }
}

impl Error for NoTransaction {}
