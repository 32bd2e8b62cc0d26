//! The answers of scripts and commands, as the verbs need them.
//!
//! A script answers with a number, nothing, or a record and its times. Every other answer is an error: something else
//! than this crate's scripts has answered.

use redis::Value;

use crate::{
    store::{Finished, support::bytes::DecodeError},
    value::{StoreError, StoreErrorKind},
};

use super::{
    connection::server_reply,
    error::CommandError,
    record::{EncodedRecord, NO_TTL},
};

/// The bytes of a record and its times, all of one moment.
pub(super) struct RawRecord {
    pub(super) bytes: Vec<u8>,
    /// The result of `PTTL`.
    pub(super) left: i64,
    /// The result of `PEXPIRETIME`.
    pub(super) expires: i64,
}

impl RawRecord {
    /// Reads the answer of a script that returns what it found.
    pub(super) fn read(answer: Value) -> Result<Option<Self>, CommandError> {
        let Value::Array(answers) = answer else {
            return if answer == Value::Nil { Ok(None) } else { Err(CommandError::UnexpectedReply) };
        };
        let [bytes, left, expires] = <[Value; 3]>::try_from(answers).map_err(|_| CommandError::UnexpectedReply)?;
        let (left, expires) = (expect_int(left)?, expect_int(expires)?);
        match server_reply(bytes)? {
            Value::BulkString(bytes) => Ok(Some(Self { bytes, left, expires })),
            Value::Nil => Ok(None),
            _ => Err(CommandError::UnexpectedReply),
        }
    }

    /// Creates it from the bytes alone, if the times were not queried.
    pub(super) fn without_times(bytes: Vec<u8>) -> Self {
        Self { bytes, left: NO_TTL, expires: NO_TTL }
    }
}

/// Returns the outcome of a script that settles or releases a record.
pub(super) fn finished(answer: Value) -> Result<Finished, StoreError> {
    match answer {
        Value::Int(1) => Ok(Finished::Done),
        Value::Int(2) => Ok(Finished::AlreadyDone),
        answer => {
            let Some(found) = RawRecord::read(answer)? else { return Ok(Finished::Refused(None)) };
            match EncodedRecord::read(found.bytes, found.left) {
                Ok(stored) => Ok(Finished::Refused(Some(Box::new(stored.record(found.expires))))),
                // The claim is lost to a later version, whose records cannot be shown.
                Err(DecodeError::Newer) => Ok(Finished::Refused(None)),
                Err(DecodeError::Corrupt) => Err(corrupt()),
            }
        }
    }
}

/// Returns the error for a string that is not a record.
pub(super) fn corrupt() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "what has the name of a record is none").without_effect()
}

/// Returns the number of an answer that must be one.
pub(super) fn expect_int(value: Value) -> Result<i64, CommandError> {
    match server_reply(value)? {
        Value::Int(number) => Ok(number),
        _ => Err(CommandError::UnexpectedReply),
    }
}
