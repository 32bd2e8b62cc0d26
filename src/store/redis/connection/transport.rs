//! One interface for a connection of the store's own, one of the application's, and a cluster.
//!
//! Whether a command may be sent again is the caller's knowledge, so each call says it. A second error keeps in mind
//! that the first try may have taken effect (`CommandError::after`).

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Pipeline, RedisFuture, Value, aio::ConnectionLike};
use tokio::time::timeout;

use super::{
    managed::ManagedConnection,
    wire::{RetryOnDisconnect, ServerAddress, map_timeout, server_reply},
};
use crate::store::redis::error::CommandError;

/// The connection to the server or the servers.
pub(in crate::store::redis) enum Transport {
    /// A connection of the store's own.
    Managed(Arc<ManagedConnection>),
    /// A connection that the application provides and maintains.
    Provided(Box<dyn CloneConnection>, Duration),
    /// Connections to the servers of a cluster, each of which has some of the records.
    #[cfg(feature = "redis-cluster")]
    Cluster(super::cluster::Cluster),
}

/// A connection of the application's, of which each command uses a clone.
pub(in crate::store::redis) trait CloneConnection: Send + Sync {
    /// Sends a command.
    fn command<'a>(&'a self, command: &'a Cmd) -> RedisFuture<'a, Value>;

    /// Sends a batch; `skip` and `keep` select its answers.
    fn pipeline<'a>(&'a self, pipeline: &'a Pipeline, skip: usize, keep: usize) -> RedisFuture<'a, Vec<Value>>;
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> CloneConnection for C {
    fn command<'a>(&'a self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut connection = self.clone();
        Box::pin(async move { connection.req_packed_command(command).await })
    }

    fn pipeline<'a>(&'a self, pipeline: &'a Pipeline, skip: usize, keep: usize) -> RedisFuture<'a, Vec<Value>> {
        let mut connection = self.clone();
        Box::pin(async move { connection.req_packed_commands(pipeline, skip, keep).await })
    }
}

impl Transport {
    /// Returns whether the records are on several servers.
    pub(in crate::store::redis) fn is_cluster(&self) -> bool {
        match self {
            Self::Managed(_) | Self::Provided(..) => false,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(_) => true,
        }
    }

    /// Returns whether sentinels determine its server.
    pub(in crate::store::redis) fn has_sentinels(&self) -> bool {
        matches!(self, Self::Managed(managed) if managed.has_sentinels())
    }

    /// Returns the servers that hold the records; `None` is a single server.
    #[cfg_attr(not(feature = "redis-cluster"), expect(clippy::unused_async, reason = "a cluster is asked"))]
    pub(in crate::store::redis) async fn masters(&self) -> Result<Vec<Option<ServerAddress>>, CommandError> {
        match self {
            Self::Managed(_) | Self::Provided(..) => Ok(vec![None]),
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(cluster) => cluster.masters().await,
        }
    }

    /// Sends a command that reads, to one of the masters.
    pub(in crate::store::redis) async fn command_at(
        &self,
        node: Option<&ServerAddress>,
        command: &Cmd,
    ) -> Result<Value, CommandError> {
        match (self, node) {
            #[cfg(feature = "redis-cluster")]
            (Self::Cluster(cluster), Some(node)) => server_reply(cluster.command_at(node, command).await?),
            _ => self.command(command, RetryOnDisconnect::Yes).await,
        }
    }

    /// Sends commands that read, to one of the masters, in one batch.
    pub(in crate::store::redis) async fn pipeline_at(
        &self,
        node: Option<&ServerAddress>,
        pipeline: &Pipeline,
    ) -> Result<Vec<Value>, CommandError> {
        match (self, node) {
            #[cfg(feature = "redis-cluster")]
            (Self::Cluster(cluster), Some(node)) => cluster.pipeline_at(node, pipeline).await,
            _ => self.pipeline(pipeline, RetryOnDisconnect::Yes).await,
        }
    }

    /// Sends a command, and once more if the connection breaks and the command permits it.
    pub(in crate::store::redis) async fn command(
        &self,
        command: &Cmd,
        again: RetryOnDisconnect,
    ) -> Result<Value, CommandError> {
        match self.command_once(command).await {
            Err(first) if again == RetryOnDisconnect::Yes && first.is_disconnect() => {
                self.command_once(command).await.map_err(|second| second.after(first))
            }
            answer => answer,
        }
    }

    /// Sends commands in one batch. Each has an answer, which may be an error of the server's.
    pub(in crate::store::redis) async fn pipeline(
        &self,
        pipeline: &Pipeline,
        again: RetryOnDisconnect,
    ) -> Result<Vec<Value>, CommandError> {
        match self.pipeline_once(pipeline).await {
            Err(first) if again == RetryOnDisconnect::Yes && first.is_disconnect() => {
                self.pipeline_once(pipeline).await.map_err(|second| second.after(first))
            }
            // A key that is moving to another server can be queried there only by one command at a time.
            Err(first) if again == RetryOnDisconnect::Yes && self.is_cluster() && first.is_elsewhere() => {
                let mut answers = Vec::with_capacity(pipeline.len());
                for command in pipeline.cmd_iter() {
                    let answer = self.command(command, again).await;
                    answers.push(answer.map_err(|second| second.after(first.clone()))?);
                }
                Ok(answers)
            }
            answers => answers,
        }
    }

    /// Sends a command once.
    async fn command_once(&self, command: &Cmd) -> Result<Value, CommandError> {
        let value = match self {
            Self::Managed(managed) => managed.command(command).await,
            Self::Provided(connection, limit) => map_timeout(timeout(*limit, connection.command(command)).await),
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(cluster) => cluster.command(command).await,
        };
        server_reply(value?)
    }

    /// Sends a batch once. Of a transaction only the answer to `EXEC` is kept.
    async fn pipeline_once(&self, pipeline: &Pipeline) -> Result<Vec<Value>, CommandError> {
        let (skip, keep) = if pipeline.is_transaction() { (pipeline.len() + 1, 1) } else { (0, pipeline.len()) };
        let mut values = match self {
            Self::Managed(managed) => managed.pipeline(pipeline, skip, keep).await?,
            Self::Provided(connection, limit) => {
                map_timeout(timeout(*limit, connection.pipeline(pipeline, skip, keep)).await)?
            }
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(cluster) => cluster.pipeline(pipeline, skip, keep).await?,
        };
        if !pipeline.is_transaction() {
            return Ok(values);
        }
        match values.pop().map(server_reply) {
            Some(Ok(Value::Array(values))) => Ok(values),
            Some(Err(error)) => Err(error),
            _ => Err(CommandError::UnexpectedReply),
        }
    }
}
