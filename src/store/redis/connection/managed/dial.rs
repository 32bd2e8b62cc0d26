//! Opening a connection, one caller for all.
//!
//! Attempts that hang do not block others: every half second another one begins beside those that have not ended, and
//! the first success counts. After a failure the next try waits, longer each time up to half a second, so that a server
//! that restarts is not flooded. The work is a task of its own, so that it is not lost with the caller that began it.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, aio::SendError};
use tokio::{
    runtime::Handle,
    sync::OwnedMutexGuard,
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    ManagedConnection, OpenConnection,
    dial_state::{DialState, LONGEST_PAUSE},
};
use crate::store::redis::error::CommandError;

/// After this long, another attempt begins in parallel with one that has not ended: that one may never end, although
/// the server or its replacement is available.
const PARALLEL_AFTER: Duration = Duration::from_millis(500);

/// A server that was suspended answers on the old connection before it does on a new one; this is how long that answer
/// may take to arrive.
const LAST_CHANCE: Duration = Duration::from_millis(10);

impl ManagedConnection {
    /// Returns the connection, opened if there is none.
    pub(in crate::store::redis) async fn connected(self: &Arc<Self>) -> Result<OpenConnection, CommandError> {
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let limit = self.limits.connect.saturating_add(LONGEST_PAUSE);
        timeout(limit, Box::pin(self.connect())).await.unwrap_or(Err(CommandError::NoConnection))
    }

    /// Opens a connection, or waits for the caller that is opening one.
    pub(in crate::store::redis) async fn connect(self: &Arc<Self>) -> Result<OpenConnection, CommandError> {
        let before = self.tries.load(Relaxed);
        let dial = Arc::clone(&self.dial).lock_owned().await;
        if let Some(current) = self.current() {
            return Ok(current);
        }
        if self.tries.load(Relaxed) > before
            && let Some(error) = dial.error()
        {
            return Err(CommandError::NotSent(error));
        }
        // A task of its own goes on if its caller gives up: otherwise callers with short limits might never get a
        // connection.
        match tokio::spawn(Arc::clone(self).begin(dial)).await {
            Ok(connected) => connected.map_err(CommandError::NotSent),
            Err(_) => Err(CommandError::NoConnection),
        }
    }

    /// Opens a connection and makes it the current one.
    async fn begin(self: Arc<Self>, mut dial: OwnedMutexGuard<DialState>) -> Result<OpenConnection, RedisError> {
        let current = self.dial(&mut dial).await?;
        self.replace_current(current.clone());
        Ok(current)
    }

    /// Opens another connection in parallel with the one of this number, on which nothing is answered, unless that is
    /// under way.
    pub(in crate::store::redis) fn suspect(self: &Arc<Self>, number: u64) {
        if self.current().is_none_or(|current| current.number != number) {
            return;
        }
        let (Ok(runtime), Ok(dial)) = (Handle::try_current(), Arc::clone(&self.dial).try_lock_owned()) else { return };
        let answered_before = self.answers.count();
        runtime.spawn(Arc::clone(self).replace(dial, answered_before));
    }

    /// Opens a connection beside a silent one, and replaces it if it is still silent.
    async fn replace(self: Arc<Self>, mut dial: OwnedMutexGuard<DialState>, answered_before: u64) {
        let Ok(current) = self.dial(&mut dial).await else { return };
        sleep(LAST_CHANCE).await;
        if self.answers.count() == answered_before || self.current().is_none() {
            self.replace_current(current);
        }
    }

    /// Opens a connection after the pause that is due, and keeps the result.
    async fn dial(self: &Arc<Self>, dial: &mut DialState) -> Result<OpenConnection, RedisError> {
        dial.pause().await;
        // With sentinels several connections are needed; each has the same limit.
        let limit = self.limits.connect.saturating_mul(3);
        let connected = timeout(limit, self.attempts()).await.unwrap_or_else(|_| Err(late()));
        self.tries.fetch_add(1, Relaxed);
        match &connected {
            Ok(_) => *dial = DialState::default(),
            Err(error) => dial.fail(error.clone()),
        }
        connected
    }

    /// Returns the first connection that succeeds; fails if every attempt has failed.
    ///
    /// Attempts that have not ended are dropped with the set once one has succeeded.
    async fn attempts(self: &Arc<Self>) -> Result<OpenConnection, RedisError> {
        let (mut attempts, mut failed) = (JoinSet::new(), late());
        loop {
            attempts.spawn(Arc::clone(self).attempt());
            let deadline = Instant::now() + PARALLEL_AFTER;
            while let Ok(ended) = timeout_at(deadline, attempts.join_next()).await {
                match ended {
                    Some(Ok(Ok(current))) => return Ok(current),
                    Some(Ok(Err(error))) => failed = error,
                    Some(Err(_)) => {}
                    None => return Err(failed),
                }
            }
        }
    }

    /// Opens one connection.
    async fn attempt(self: Arc<Self>) -> Result<OpenConnection, RedisError> {
        let number = self.attempts.fetch_add(1, Relaxed);
        let (connection, address) = self.target.connect(&self.config(number)).await?;
        Ok(OpenConnection { connection, number, address, since: Instant::now() })
    }

    /// Returns a configuration in which a closed connection, even an unused one, gives itself up. Only the third
    /// version of the protocol notices that; otherwise the next command does.
    fn config(self: &Arc<Self>, number: u64) -> AsyncConnectionConfig {
        // The link enforces the limit for an answer, since it knows what was sent.
        let config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(Some(self.limits.connect));
        if !self.target.supports_push() {
            return config;
        }
        let (managed, on_push) = (Arc::downgrade(self), self.on_push.clone());
        config.set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection
                && let Some(managed) = managed.upgrade()
            {
                managed.give_up(number);
            }
            if let Some(on_push) = &on_push {
                on_push(push);
            }
            Ok::<_, SendError>(())
        })
    }
}

/// Returns the error of a try that took too long.
fn late() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
