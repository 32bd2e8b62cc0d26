//! What the errors of a database mean.
//!
//! Each database classifies its own codes (`Driver::refusal`) into three: the statement lost and may be sent again, the
//! connection is cut, or the statement was not done for a reason. The conversion to a `StoreError` is the same for all.

use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};

use sqlx::Error;

use crate::value::{StoreError, StoreErrorKind};

use super::driver::{ErrorClass, SqlDatabase};

/// The reason why a statement has no answer.
#[derive(Debug)]
pub(crate) enum StatementError {
    /// It was not sent: there is no connection.
    NotSent(Error),
    /// It was sent, or may have been.
    Failed(Error),
}

impl StatementError {
    pub(crate) fn is_conflict<D: SqlDatabase>(&self) -> bool {
        matches!(self, Self::Failed(Error::Database(error)) if D::refusal(&**error) == ErrorClass::Conflict)
    }

    /// Returns whether the connection broke while the statement was under way, or while the connection was opened.
    pub(crate) fn is_disconnect<D: SqlDatabase>(&self) -> bool {
        match self {
            Self::Failed(Error::Database(error)) | Self::NotSent(Error::Database(error)) => {
                D::refusal(&**error) == ErrorClass::Disconnected
            }
            Self::Failed(Error::Io(_) | Error::WorkerCrashed) => true,
            // The pool itself retries a connection that is refused, and one that takes too long has used up its time.
            Self::NotSent(Error::Io(error)) => {
                matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
            }
            _ => false,
        }
    }

    pub(crate) fn is_sent(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Converts to a store's error. `sent_before` means that an earlier try may have taken effect.
    ///
    /// Messages contain neither hosts nor keys. Only the text of the driver's error is kept: its `Debug` may show rows.
    pub(crate) fn into_error<D: SqlDatabase>(self, sent_before: bool) -> StoreError {
        use StoreErrorKind::{Corrupt, Misconfigured, Other, Unavailable};

        let (error, unsent) = match self {
            Self::NotSent(error) => (error, true),
            Self::Failed(error) => (error, false),
        };
        let (kind, message, undone) = match &error {
            Error::Database(error) => match D::refusal(&**error) {
                ErrorClass::Conflict => (Unavailable, "lost against other statements again and again", true),
                ErrorClass::Disconnected => (Unavailable, "ended the connection", false),
                ErrorClass::Rejected(kind, message) => (kind, message, true),
            },
            Error::PoolTimedOut => (Unavailable, "no connection in time", true),
            Error::PoolClosed => (Unavailable, "the pool is closed", true),
            Error::Configuration(_) => {
                let message = format!("{}: the settings of the connection are wrong", D::NAME);
                return StoreError::new(Misconfigured, message).without_effect();
            }
            Error::Tls(_) => (Misconfigured, "no connection by TLS", true),
            Error::Io(_) | Error::WorkerCrashed if unsent => (Unavailable, "no connection", true),
            Error::Io(_) | Error::WorkerCrashed => (Unavailable, "the connection is lost", false),
            Error::ColumnDecode { .. } | Error::Decode(_) | Error::ColumnNotFound(_) => {
                (Corrupt, "a record cannot be read; is the table that of `schema()`?", false)
            }
            Error::Encode(_) => (Other, "a value cannot be sent", true),
            _ => (Other, "failed", unsent),
        };
        let error = StoreError::new(kind, format!("{}: {message}", D::NAME)).with_source(error.to_string());
        if (undone || unsent) && !sent_before { error.without_effect() } else { error }
    }
}

/// Returns the error that no statement can contain the record.
pub(crate) fn too_large<D: SqlDatabase>(bytes: u64) -> StoreError {
    let message = format!(
        "{}: a record of {bytes} bytes is more than the database takes: raise its limit (`max_allowed_packet` of MariaDB), \
         or lower the layer's `response_limit`",
        D::NAME
    );
    StoreError::new(StoreErrorKind::TooLarge, message)
}

/// Returns the error that a record was written by a later version of this crate.
pub(crate) fn newer<D: SqlDatabase>() -> StoreError {
    let message = format!("{}: the record was written by a later version of this crate", D::NAME);
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// Returns the error that a record was not written by this crate.
pub(crate) fn corrupt<D: SqlDatabase>() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("{}: a record cannot be read", D::NAME))
}
