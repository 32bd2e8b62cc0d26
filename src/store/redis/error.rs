//! Why a command has no answer, and what that means for the caller.
//!
//! Three things are kept apart: whether the command was sent, since only one that was may have taken effect; whether
//! the server said that it did nothing, since then nobody has to release a claim; and whether another try may succeed.
//! The texts name neither hosts nor keys; the driver's error is kept as the source.
//!
//! | error | kind | may have taken effect |
//! | --- | --- | --- |
//! | no connection in time, or refused | unavailable | no |
//! | no answer in time | timeout | yes |
//! | the connection broke | unavailable | yes |
//! | out of memory | full | no |
//! | a replica, too few replicas, a disk that fails | unavailable | no |
//! | a missing permission, a wrong password, a cluster without the feature | misconfigured | no |
//! | a value that is larger than the server takes | too large | no |
//! | an answer of another type, a string that is not a record | corrupt | no, or as the command says |
//!
//! After a first try that may have taken effect, the error of a second try is never *without effect* (`FailedAgain`).

use std::error::Error;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::value::{StoreError, StoreErrorKind};

use super::connection::tls;

const REFUSED: &str = "connection refused: no Redis listens at this address, or a firewall refuses";

/// The reason why a command has no answer.
#[derive(Clone)]
pub(super) enum CommandError {
    /// It was not sent: there is no connection.
    NotSent(RedisError),
    /// No connection was established in time; it was not sent.
    NoConnection,
    /// It was sent, or may have been.
    Failed(RedisError),
    /// The same, after a first try that may have taken effect.
    FailedAgain(RedisError),
    /// The servers of the cluster did not agree, in all tries, which of them has the key.
    #[cfg(feature = "redis-cluster")]
    Moving(RedisError),
    /// It was sent, but not answered in time.
    NoAnswer,
    /// The answer is not one that Redis returns for this command.
    UnexpectedReply,
}

impl CommandError {
    /// Returns whether the connection broke while the command was under way.
    pub(super) fn is_disconnect(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_unrecoverable_error())
    }

    /// Returns whether the connection broke, at the first try or at the second.
    pub(super) fn was_disconnected(&self) -> bool {
        matches!(self, Self::Failed(error) | Self::FailedAgain(error) if error.is_unrecoverable_error())
    }

    /// Returns whether the server refuses a value of this size.
    pub(super) fn is_too_large(&self) -> bool {
        self.error().is_some_and(is_too_large)
    }

    /// Combines the error of a second try with that of a first one, which may have taken effect.
    pub(super) fn after(self, first: Self) -> Self {
        match self {
            Self::NotSent(_) | Self::NoConnection => first,
            Self::Failed(error) => Self::FailedAgain(error),
            other => other,
        }
    }

    /// Returns whether the script has to be sent once more, with its text.
    pub(super) fn is_unknown_script(&self) -> bool {
        self.error().map(RedisError::kind) == Some(ErrorKind::Server(ServerErrorKind::NoScript))
    }

    /// Returns whether the server knows no such command, or no such option of it.
    pub(super) fn is_unknown_command(&self) -> bool {
        self.error().is_some_and(|error| error.code() == Some("ERR") && !is_too_large(error))
    }

    /// Returns whether the server is available but accepts no writes for now.
    pub(super) fn refuses_writes(&self) -> bool {
        matches!(self.error().and_then(RedisError::code), Some("OOM" | "READONLY" | "MISCONF" | "NOREPLICAS"))
    }

    /// Returns whether the server is a replica.
    pub(super) fn is_read_only(&self) -> bool {
        self.error().and_then(RedisError::code) == Some("READONLY")
    }

    /// Returns whether the key is, or is about to be, on another server of the cluster.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self.error().and_then(RedisError::code), Some("MOVED" | "ASK" | "TRYAGAIN"))
    }

    /// Returns whether the user lacks a permission.
    pub(super) fn is_forbidden(&self) -> bool {
        self.error().and_then(RedisError::code) == Some("NOPERM")
    }

    /// Returns the driver's error, if the command was sent.
    fn error(&self) -> Option<&RedisError> {
        match self {
            Self::Failed(error) | Self::FailedAgain(error) => Some(error),
            #[cfg(feature = "redis-cluster")]
            Self::Moving(error) => Some(error),
            _ => None,
        }
    }
}

/// Messages contain neither hosts nor keys; the driver's error is the source, and contains no secret.
impl From<CommandError> for StoreError {
    fn from(error: CommandError) -> Self {
        use StoreErrorKind::{Corrupt, Full, Misconfigured, Other, Timeout, Unavailable};

        let error = match error {
            CommandError::NoConnection => {
                return Self::new(Unavailable, "no connection to Redis in time").without_effect();
            }
            CommandError::NoAnswer => return Self::new(Timeout, "Redis did not answer in time"),
            CommandError::UnexpectedReply => {
                return Self::new(Corrupt, "Redis gave an answer of another kind than was asked for");
            }
            CommandError::NotSent(error) => {
                let (kind, message) = match (error.kind(), error.code()) {
                    _ if tls::fault(&error).is_some() => (Misconfigured, tls::fault(&error).unwrap_or_default()),
                    (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS")) => {
                        (Misconfigured, "Redis refuses the password or the user")
                    }
                    (ErrorKind::RESP3NotSupported, _) => {
                        (Misconfigured, "the server is older than Redis 7.0, or stands behind a front that is")
                    }
                    (ErrorKind::InvalidClientConfig, _) => (Misconfigured, "no connection to Redis can be set up so"),
                    (_, Some("NOPERM")) => (Misconfigured, "Redis refuses the connection"),
                    _ if is_refused(&error) => (Unavailable, REFUSED),
                    // Any other reason, such as too many clients, may be temporary.
                    _ if error.is_connection_dropped() && error.source().is_some() => (
                        Unavailable,
                        "Redis closed the connection without a word, as it does where its port is for TLS alone",
                    ),
                    _ => (Unavailable, "no connection to Redis"),
                };
                return Self::new(kind, message).with_source(error).without_effect();
            }
            #[cfg(feature = "redis-cluster")]
            CommandError::Moving(error) => {
                return Self::new(Unavailable, "the Redis cluster is moving this key").with_source(error);
            }
            // `Full` would mean that nothing was done.
            CommandError::FailedAgain(error) => {
                let (kind, message) = refusal(&error).unwrap_or((Unavailable, "the connection to Redis is lost"));
                return Self::new(if kind == Full { Unavailable } else { kind }, message).with_source(error);
            }
            CommandError::Failed(error) => error,
        };
        match refusal(&error) {
            Some((kind, message)) => Self::new(kind, message).with_source(error).without_effect(),
            None if error.is_timeout() => Self::new(Timeout, "Redis did not answer in time").with_source(error),
            None if error.is_io_error() => {
                let refused = is_refused(&error);
                let message = if refused { REFUSED } else { "the connection to Redis is lost" };
                let lost = Self::new(Unavailable, message).with_source(error);
                if refused { lost.without_effect() } else { lost }
            }
            None if error.kind() == ErrorKind::ClusterConnectionNotFound => {
                let message = "no connection to the server of the cluster that has this key: the connection is refused, or \
                               nothing answers";
                Self::new(Unavailable, message).with_source(error)
            }
            None => Self::new(Other, "Redis failed").with_source(error),
        }
    }
}

/// Returns an error as that of a call which may have taken effect before it.
pub(super) fn maybe_done(error: StoreError) -> StoreError {
    // `Full` would mean that nothing was done.
    let kind = if error.kind() == StoreErrorKind::Full { StoreErrorKind::Unavailable } else { error.kind() };
    StoreError::new(kind, error.to_string()).with_source(error)
}

/// Returns whether the error says that a value is too large. The server has no code for that.
fn is_too_large(error: &RedisError) -> bool {
    let details = ["invalid bulk length", "proto-max-bulk-len", "bit offset is not an integer or out of range"];
    error.detail().is_some_and(|detail| details.iter().any(|text| detail.contains(text)))
}

/// Returns whether connections are refused. For a cluster without any reachable server, the driver reports this only as
/// text.
fn is_refused(error: &RedisError) -> bool {
    let of_all = || error.detail().is_some_and(|detail| detail.contains("Connection refused"));
    error.is_connection_refusal() || error.kind() == ErrorKind::Io && of_all()
}

/// Returns the kind of an error with which the server states that it did nothing.
fn refusal(error: &RedisError) -> Option<(StoreErrorKind, &'static str)> {
    use StoreErrorKind::{Corrupt, Full, Misconfigured, TooLarge, Unavailable};

    if is_too_large(error) {
        return Some((
            TooLarge,
            "what is to be kept is larger than Redis takes (`proto-max-bulk-len`): lower the layer's `response_limit`, and \
             what a note may hold",
        ));
    }
    Some(match error.code()? {
        "OOM" => (Full, "Redis is out of memory (`maxmemory`)"),
        "READONLY" => (Unavailable, "this Redis server is a replica and takes no writes"),
        "NOREPLICAS" => (Unavailable, "Redis has too few replicas to take writes"),
        "MISCONF" => (Unavailable, "Redis takes no writes while it cannot save them"),
        "LOADING" => (Unavailable, "Redis is loading its data"),
        "MASTERDOWN" => (Unavailable, "this Redis replica has lost its master"),
        "BUSY" => (Unavailable, "Redis is busy with a script"),
        "CLUSTERDOWN" | "TRYAGAIN" => (Unavailable, "the Redis cluster does not serve this key for now"),
        "MOVED" | "ASK" | "CROSSSLOT" => (Misconfigured, "this Redis server is one of a cluster"),
        "NOAUTH" | "WRONGPASS" => (Misconfigured, "Redis refuses the password or the user"),
        "NOPERM" => (Misconfigured, "the user of Redis lacks a permission"),
        "WRONGTYPE" => (Corrupt, "a value of another kind has the name of a record"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(text: &str) -> CommandError {
        let value = redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).unwrap();
        CommandError::Failed(value.extract_error().unwrap_err())
    }

    #[test]
    fn refusals_have_no_effect() {
        use StoreErrorKind::{Corrupt, Full, Misconfigured, Unavailable};
        for (text, kind) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", Full),
            ("READONLY You can't write against a read only replica.", Unavailable),
            ("NOREPLICAS Not enough good replicas to write.", Unavailable),
            ("MISCONF Redis is configured to save RDB snapshots", Unavailable),
            ("LOADING Redis is loading the dataset in memory", Unavailable),
            ("NOPERM User app has no permissions", Misconfigured),
            ("MOVED 3999 127.0.0.1:6381", Misconfigured),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Corrupt),
        ] {
            let error = StoreError::from(server_error(text));
            assert_eq!((error.kind(), error.is_without_effect()), (kind, true), "{text}");
        }
    }

    #[test]
    fn what_may_have_been_done_is_not_called_undone() {
        let cut = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(CommandError::Failed(cut.clone()).is_disconnect());
        for error in [CommandError::Failed(cut.clone()), CommandError::NoAnswer, server_error("ERR whatever")] {
            assert!(!StoreError::from(error).is_without_effect());
        }
        for second in [
            CommandError::NotSent(cut.clone()),
            CommandError::NoConnection,
            server_error("OOM full"),
            server_error("LOADING"),
        ] {
            let error = StoreError::from(second.after(CommandError::Failed(cut.clone())));
            assert!(!error.is_without_effect() && error.is_temporary(), "{error:?}");
        }
        assert!(server_error("OOM full").after(CommandError::Failed(cut.clone())).refuses_writes());
        assert!(StoreError::from(CommandError::NotSent(cut)).is_without_effect());
        assert!(StoreError::from(CommandError::NoConnection).is_without_effect());
    }
}
