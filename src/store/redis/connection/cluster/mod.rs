//! A Redis Cluster: `driver` has the connections for commands, `subscriber` those for messages.
//!
//! A command goes to the server of its first name's slot, which the driver of the `redis` crate knows and follows. This
//! folder adds what that driver lacks: it is replaced if it stops answering, and a batch whose names are on two servers
//! is sent command by command.

mod driver;
mod subscriber;

use std::sync::Arc;

use redis::{
    Arg, Cmd, Pipeline, RedisError, Value,
    aio::ConnectionLike,
    cluster::ClusterClient,
    cluster_routing::{RoutingInfo, SingleNodeRoutingInfo},
};

pub(in crate::store::redis) use self::subscriber::ClusterSubscriber;

use self::driver::ClusterDriver;
use super::wire::{Limits, ServerAddress, server_reply};
use crate::store::redis::error::CommandError;

/// The servers of a cluster. The driver knows which of them has a key, follows keys that move, and reconnects.
pub(in crate::store::redis) struct Cluster(Arc<ClusterDriver>);

impl Cluster {
    /// Connects to the servers that the client names.
    pub(in crate::store::redis) async fn connect(client: ClusterClient, limits: Limits) -> Result<Self, CommandError> {
        ClusterDriver::start(client, limits).await.map(Self)
    }

    /// Sends a command to the server of its name.
    pub(in crate::store::redis) async fn command(&self, command: &Cmd) -> Result<Value, CommandError> {
        let (mut connection, current) = self.0.current();
        map_moved(self.0.answered(name(command), current, connection.req_packed_command(command)).await)
    }

    /// Sends commands in one batch. All of them go to the server that has the first key.
    pub(in crate::store::redis) async fn pipeline(
        &self,
        pipeline: &Pipeline,
        skip: usize,
        keep: usize,
    ) -> Result<Vec<Value>, CommandError> {
        let (mut connection, current) = self.0.current();
        // The caller may still send the commands one by one, so the error is returned as it is.
        let name = pipeline.cmd_iter().next().and_then(name);
        self.0.answered(name, current, connection.req_packed_commands(pipeline, skip, keep)).await
    }

    /// Sends a command to one server.
    pub(in crate::store::redis) async fn command_at(
        &self,
        node: &ServerAddress,
        command: &Cmd,
    ) -> Result<Value, CommandError> {
        let (mut connection, current) = self.0.current();
        let answer = connection.route_command(command.clone(), RoutingInfo::SingleNode(route_to(node)));
        map_moved(self.0.answered(None, current, answer).await)
    }

    /// Sends a batch to one server.
    pub(in crate::store::redis) async fn pipeline_at(
        &self,
        node: &ServerAddress,
        pipeline: &Pipeline,
    ) -> Result<Vec<Value>, CommandError> {
        let (mut connection, current) = self.0.current();
        let answers = connection.route_pipeline(pipeline.clone(), 0, pipeline.len(), route_to(node));
        map_moved(self.0.answered(None, current, answers).await)
    }

    /// Returns the servers that have slots, in the order of their addresses.
    pub(in crate::store::redis) async fn masters(&self) -> Result<Vec<Option<ServerAddress>>, CommandError> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let (mut connection, current) = self.0.current();
        let anywhere = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
        let answer = map_moved(self.0.answered(None, current, connection.route_command(command, anywhere)).await)?;
        let Value::Array(ranges) = server_reply(answer)? else { return Err(CommandError::UnexpectedReply) };
        let mut masters: Vec<_> = ranges.iter().map(master).collect();
        masters.sort_unstable();
        masters.dedup();
        if masters.is_empty() || masters.contains(&None) { Err(CommandError::UnexpectedReply) } else { Ok(masters) }
    }
}

/// Returns the first name that a command is on.
fn name(command: &Cmd) -> Option<&[u8]> {
    let mut words = command.args_iter().map(|word| match word {
        Arg::Simple(word) => Some(word),
        _ => None,
    });
    // The script comes first, then the number of names.
    let before = if words.next()??.starts_with(b"EVAL") { 2 } else { 0 };
    words.nth(before)?
}

/// Returns the first server of a range of slots.
fn master(range: &Value) -> Option<ServerAddress> {
    let Value::Array(range) = range else { return None };
    let [_, _, Value::Array(master), ..] = &**range else { return None };
    let [Value::BulkString(host), Value::Int(port), ..] = &**master else { return None };
    Some((String::from_utf8(host.clone()).ok()?, u16::try_from(*port).ok()?))
}

/// Returns the route to one server.
fn route_to((host, port): &ServerAddress) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port }
}

/// Maps the error if the driver has followed a moving key as often as it may; that is temporary.
fn map_moved<T>(answer: Result<T, CommandError>) -> Result<T, CommandError> {
    answer.map_err(|error| match error {
        CommandError::Failed(error) if is_moving(&error) => CommandError::Moving(error),
        other => other,
    })
}

/// Returns whether the error says that the key is, or goes, elsewhere.
fn is_moving(error: &RedisError) -> bool {
    matches!(error.code(), Some("MOVED" | "ASK" | "TRYAGAIN"))
}
