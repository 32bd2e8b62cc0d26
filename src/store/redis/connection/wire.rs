//! What all kinds of connections have in common: limits, repetition, and how a server's answer is read.
//!
//! A command whose connection broke may be sent again only if its repetition has no further effect. That is so for
//! every verb that compares the claimant, so the caller states it for each command (`RetryOnDisconnect`).

use std::time::Duration;

use redis::{Client, ConnectionInfo, ProtocolVersion, RedisError, Value};

use crate::store::redis::error::CommandError;

/// Whether a command is sent once more if the connection breaks while it is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::redis) enum RetryOnDisconnect {
    /// It is sent again: a repetition has no further effect, since the claimant is recognised.
    Yes,
    /// It is not sent again.
    No,
}

/// A server of a cluster: its host and its port.
pub(in crate::store::redis) type ServerAddress = (String, u16);

/// The time limits.
#[derive(Clone, Copy)]
pub(in crate::store::redis) struct Limits {
    /// How long it may take to open a connection.
    pub(in crate::store::redis) connect: Duration,
    /// How long the answer to a command may take.
    pub(in crate::store::redis) command: Duration,
}

/// Returns the answer to a command, or that none came in time.
pub(in crate::store::redis) fn map_timeout<T, E>(answer: Result<Result<T, RedisError>, E>) -> Result<T, CommandError> {
    answer.map_or(Err(CommandError::NoAnswer), |answer| answer.map_err(CommandError::Failed))
}

/// Returns the server's answer, unless it is an error.
pub(in crate::store::redis) fn server_reply(value: Value) -> Result<Value, CommandError> {
    match value {
        Value::ServerError(error) => Err(CommandError::Failed(error.into())),
        value => Ok(value),
    }
}

/// Returns the client of a connection that receives messages beside answers, which needs the third version of the
/// protocol.
pub(in crate::store::redis) fn resp3_client(info: &ConnectionInfo) -> Result<Client, RedisError> {
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Client::open(info.clone().set_redis_settings(settings))
}
