//! A connection that heals.
//!
//! `current` is the current connection and its number. Everything that finds a connection bad names it by this number, so
//! that a late complaint about the former connection does not close its successor. The lock of `current` is held for one
//! read or one write.
//!
//! A command of a caller runs on a clone of the multiplexed connection; a caller that gives up disturbs no other one.

mod confirm;
mod dial;
mod dial_state;
mod last_confirmed;
mod target;

use std::{
    future::Future,
    sync::{Arc, PoisonError, RwLock, atomic::AtomicU64},
    time::Duration,
};

use redis::{
    Cmd, Pipeline, PushInfo, RedisError, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tokio::{
    sync::{Mutex, Notify},
    time::Instant,
};

use crate::store::redis::error::CommandError;

pub(in crate::store::redis) use self::target::Target;

use self::{dial_state::DialState, last_confirmed::LastConfirmed};
use super::{answers::Answers, wire::Limits};

/// How long a connection to a server that accepts no writes is kept at least.
const REPLICA: Duration = Duration::from_secs(1);

/// One connection that all callers share, reopened if it breaks.
///
/// It is opened when a caller needs it, and callers that come meanwhile wait for the result. So a caller knows whether
/// its command was sent, and an unavailable server is tried no more often than the pauses allow.
///
/// A connection on which nothing is answered for a quarter of a second, whatever the limits are, is suspected to be
/// dead. Another one is then opened in parallel, and replaces it if there is still no answer.
pub(in crate::store::redis) struct ManagedConnection {
    /// The server, or the sentinels that know it.
    target: Target,
    /// Receives pushed messages.
    on_push: Option<Arc<dyn Fn(PushInfo) + Send + Sync>>,
    limits: Limits,
    current: RwLock<Option<OpenConnection>>,
    /// Notified when there is a new connection.
    renewed: Notify,
    /// How often connecting was tried, and how many attempts that took.
    tries: AtomicU64,
    attempts: AtomicU64,
    /// Locked by the task that opens a connection; others wait for the result.
    dial: Arc<Mutex<DialState>>,
    /// Counts answers, to notice silence.
    answers: Answers,
    /// When the server last answered, for `confirmed`.
    confirmed_at: LastConfirmed,
}

/// A connection that is in use.
#[derive(Clone)]
pub(in crate::store::redis) struct OpenConnection {
    pub(in crate::store::redis) connection: MultiplexedConnection,
    /// The number of this connection.
    pub(in crate::store::redis) number: u64,
    /// The address of its server.
    address: Arc<str>,
    /// When it was opened.
    since: Instant,
}

impl ManagedConnection {
    /// Creates a link without a connection; the first command opens one.
    pub(in crate::store::redis) fn new(target: Target, limits: Limits) -> Self {
        Self {
            target,
            on_push: None,
            limits,
            current: RwLock::default(),
            renewed: Notify::new(),
            tries: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            dial: Arc::default(),
            answers: Answers::default(),
            confirmed_at: LastConfirmed::never(),
        }
    }

    /// Sets the receiver of messages.
    pub(in crate::store::redis) fn with_push_handler(self, on_push: impl Fn(PushInfo) + Send + Sync + 'static) -> Self {
        Self { on_push: Some(Arc::new(on_push)), ..self }
    }

    /// Returns whether sentinels determine its server.
    pub(in crate::store::redis) fn has_sentinels(&self) -> bool {
        self.target.has_sentinels()
    }

    /// Sends a command.
    pub(in crate::store::redis) async fn command(self: &Arc<Self>, command: &Cmd) -> Result<Value, CommandError> {
        let OpenConnection { mut connection, number, since, .. } = self.confirmed().await?;
        let answer = self.answered(number, connection.req_packed_command(command)).await;
        if answer.as_ref().map_or_else(CommandError::is_read_only, is_read_only) {
            self.give_up_replica(number, since);
        }
        answer
    }

    /// Sends a batch; `skip` and `keep` select its answers.
    pub(in crate::store::redis) async fn pipeline(
        self: &Arc<Self>,
        pipeline: &Pipeline,
        skip: usize,
        keep: usize,
    ) -> Result<Vec<Value>, CommandError> {
        let OpenConnection { mut connection, number, since, .. } = self.confirmed().await?;
        let answers = self.answered(number, connection.req_packed_commands(pipeline, skip, keep)).await;
        if answers.as_ref().map_or_else(CommandError::is_read_only, |answers| answers.iter().any(is_read_only)) {
            self.give_up_replica(number, since);
        }
        answers
    }

    /// Gives up the connection to a server that accepts no writes: it may have been the master, and another one may be
    /// by now. If the application uses a replica on purpose, not every refusal leads to a new connection.
    fn give_up_replica(&self, number: u64, since: Instant) {
        if since.elapsed() >= REPLICA {
            self.give_up(number);
        }
    }

    /// Gives up the connection of this number, so that the next command opens another.
    pub(in crate::store::redis) fn give_up(&self, number: u64) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| current.number == number) {
            *current = None;
        }
    }

    /// Returns the current connection.
    fn current(&self) -> Option<OpenConnection> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the current connection, and wakes those that wait on the former one.
    fn replace_current(&self, current: OpenConnection) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(current);
        self.renewed.notify_waiters();
    }

    /// Resolves once there is another connection than the one of this number.
    async fn replaced(&self, number: u64) {
        loop {
            let renewed = self.renewed.notified();
            if self.current().is_some_and(|current| current.number != number) {
                return;
            }
            renewed.await;
        }
    }

    /// Waits for an answer. The connection is given up if it breaks, or if nothing at all is answered on it meanwhile.
    ///
    /// A command that was too late proves nothing as long as others are answered: it may be slow. If none is, the
    /// connection is given up, and the next command opens another.
    async fn answered<T>(
        self: &Arc<Self>,
        number: u64,
        answer: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, CommandError> {
        let before = self.answers.count();
        let answer =
            self.answers.wait(self.limits.command, answer, self.replaced(number), || self.suspect(number)).await;
        match &answer {
            Ok(_) if self.target.has_sentinels() => self.confirmed_at.now(),
            Err(CommandError::NoAnswer) if self.answers.count() != before => {}
            Err(error) if error.is_disconnect() || matches!(error, CommandError::NoAnswer) => self.give_up(number),
            _ => {}
        }
        answer
    }
}

/// Returns whether the answer is the refusal of a replica.
fn is_read_only(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.code() == "READONLY")
}
