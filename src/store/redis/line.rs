use std::{sync::Arc, time::Duration};

use redis::{Client, Cmd, ConnectionInfo, Pipeline, ProtocolVersion, RedisError, Value, aio::ConnectionLike};
use tokio::time::timeout;

use super::{error::Trouble, link::Link};

/// Whether a command is sent once more where the connection breaks under it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It is: done twice, it comes to the same, since the claimant is recognised.
    Yes,
    /// It is not.
    No,
}

/// The way to the server. A cluster, or servers watched by sentinels, would be further ways.
pub(super) enum Line {
    /// A connection of the store's own.
    Own(Arc<Link>),
    /// One that the application brought and looks after.
    Lent(Box<dyn Lend>, Duration),
}

/// A connection of the application's that can be cloned.
pub(super) trait Lend: Send + Sync {
    fn lend(&self) -> Box<dyn ConnectionLike + Send>;
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Lend for C {
    fn lend(&self) -> Box<dyn ConnectionLike + Send> {
        Box::new(self.clone())
    }
}

impl Line {
    pub(super) async fn command(&self, command: &Cmd, again: Again) -> Result<Value, Trouble> {
        match self.command_once(command).await {
            Err(first) if again == Again::Yes && first.is_cut() => {
                self.command_once(command).await.map_err(|second| second.after(first))
            }
            answer => answer,
        }
    }

    /// Sends commands in one go. Each has an answer, which may be an error of the server's.
    pub(super) async fn pipeline(&self, pipeline: &Pipeline, again: Again) -> Result<Vec<Value>, Trouble> {
        match self.pipeline_once(pipeline).await {
            Err(first) if again == Again::Yes && first.is_cut() => {
                self.pipeline_once(pipeline).await.map_err(|second| second.after(first))
            }
            answers => answers,
        }
    }

    async fn command_once(&self, command: &Cmd) -> Result<Value, Trouble> {
        let value = match self {
            Self::Own(link) => link.command(command).await,
            Self::Lent(connection, limit) => {
                let mut connection = connection.lend();
                lent(timeout(*limit, connection.req_packed_command(command)).await)
            }
        };
        said(value?)
    }

    async fn pipeline_once(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Trouble> {
        let (skip, keep) = if pipeline.is_transaction() { (pipeline.len() + 1, 1) } else { (0, pipeline.len()) };
        let mut values = match self {
            Self::Own(link) => link.pipeline(pipeline, skip, keep).await?,
            Self::Lent(connection, limit) => {
                let mut connection = connection.lend();
                lent(timeout(*limit, connection.req_packed_commands(pipeline, skip, keep)).await)?
            }
        };
        if !pipeline.is_transaction() {
            return Ok(values);
        }
        match values.pop().map(said) {
            Some(Ok(Value::Array(values))) => Ok(values),
            Some(Err(trouble)) => Err(trouble),
            _ => Err(Trouble::Odd),
        }
    }
}

fn lent<T, E>(answer: Result<Result<T, RedisError>, E>) -> Result<T, Trouble> {
    answer.map_or(Err(Trouble::NoAnswer), |answer| answer.map_err(Trouble::Failed))
}

/// What the server said, unless that is an error.
pub(super) fn said(value: Value) -> Result<Value, Trouble> {
    match value {
        Value::ServerError(error) => Err(Trouble::Failed(error.into())),
        value => Ok(value),
    }
}

/// The client of a connection that hears messages beside answers, which takes the third version of the protocol.
pub(super) fn hearing(info: &ConnectionInfo) -> Result<Client, RedisError> {
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Client::open(info.clone().set_redis_settings(settings))
}
