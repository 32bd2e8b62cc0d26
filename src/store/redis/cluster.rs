use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{
    Cmd, Pipeline, PushInfo, RedisError, Value,
    aio::{ConnectionLike, SendError},
    cluster::{ClusterClient, ClusterConfig},
    cluster_async::ClusterConnection,
    cluster_routing::{RoutingInfo, SingleNodeRoutingInfo},
};
use tokio::time::timeout;

use super::{
    error::Trouble,
    line::{Node, lent, said},
    link::Limits,
};

/// The servers of a cluster. The driver knows which of them has a key, follows it where it moves, and connects anew.
pub(super) struct Cluster {
    connection: ClusterConnection,
    limit: Duration,
}

impl Cluster {
    pub(super) async fn connect(client: &ClusterClient, limits: Limits) -> Result<Self, Trouble> {
        let connected = client.get_async_connection_with_config(config(limits));
        match timeout(limits.connect, connected).await {
            Ok(Ok(connection)) => Ok(Self { connection, limit: limits.command }),
            Ok(Err(error)) => Err(Trouble::Unsent(error)),
            Err(_) => Err(Trouble::NoConnection),
        }
    }

    pub(super) async fn command(&self, command: &Cmd) -> Result<Value, Trouble> {
        let mut connection = self.connection.clone();
        settled(lent(timeout(self.limit, connection.req_packed_command(command)).await))
    }

    /// All commands go to the server that has the first key.
    pub(super) async fn pipeline(&self, pipeline: &Pipeline, skip: usize, keep: usize) -> Result<Vec<Value>, Trouble> {
        let mut connection = self.connection.clone();
        // Whoever sent several commands may yet send them one by one, so it is left open what this comes to.
        lent(timeout(self.limit, connection.req_packed_commands(pipeline, skip, keep)).await)
    }

    pub(super) async fn command_at(&self, node: &Node, command: &Cmd) -> Result<Value, Trouble> {
        let mut connection = self.connection.clone();
        settled(lent(
            timeout(self.limit, connection.route_command(command.clone(), RoutingInfo::SingleNode(at(node)))).await,
        ))
    }

    pub(super) async fn pipeline_at(&self, node: &Node, pipeline: &Pipeline) -> Result<Vec<Value>, Trouble> {
        let mut connection = self.connection.clone();
        let answers = connection.route_pipeline(pipeline.clone(), 0, pipeline.len(), at(node));
        settled(lent(timeout(self.limit, answers).await))
    }

    /// The servers that have slots, in the order of their addresses.
    pub(super) async fn masters(&self) -> Result<Vec<Option<Node>>, Trouble> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let mut connection = self.connection.clone();
        let anywhere = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
        let answer = settled(lent(timeout(self.limit, connection.route_command(command, anywhere)).await))?;
        let Value::Array(ranges) = said(answer)? else { return Err(Trouble::Odd) };
        let mut masters: Vec<_> = ranges.iter().map(master).collect();
        masters.sort_unstable();
        masters.dedup();
        if masters.is_empty() || masters.contains(&None) { Err(Trouble::Odd) } else { Ok(masters) }
    }
}

/// The first server of a range of slots.
fn master(range: &Value) -> Option<Node> {
    let Value::Array(range) = range else { return None };
    let [_, _, Value::Array(master), ..] = &**range else { return None };
    let [Value::BulkString(host), Value::Int(port), ..] = &**master else { return None };
    Some((String::from_utf8(host.clone()).ok()?, u16::try_from(*port).ok()?))
}

fn at((host, port): &Node) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port }
}

fn config(limits: Limits) -> ClusterConfig {
    ClusterConfig::new().set_connection_timeout(limits.connect).set_response_timeout(limits.command)
}

/// The driver has gone after the key as often as it does; that passes.
fn settled<T>(answer: Result<T, Trouble>) -> Result<T, Trouble> {
    answer.map_err(|trouble| match trouble {
        Trouble::Failed(error) if is_moving(&error) => Trouble::Moving(error),
        other => other,
    })
}

fn is_moving(error: &RedisError) -> bool {
    matches!(error.code(), Some("MOVED" | "ASK" | "TRYAGAIN"))
}

/// Hears what is published in the slots of a cluster, on connections of its own.
pub(super) struct Ears {
    client: ClusterClient,
    config: ClusterConfig,
    limits: Limits,
    heard: tokio::sync::Mutex<Option<Heard>>,
}

/// Connections, and the channels that were subscribed to on them.
#[derive(Clone)]
struct Heard {
    connection: ClusterConnection,
    channels: Arc<Mutex<HashSet<Vec<u8>>>>,
}

impl Heard {
    fn channels(&self) -> MutexGuard<'_, HashSet<Vec<u8>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ears {
    pub(super) fn new(client: ClusterClient, limits: Limits, hear: impl Fn(PushInfo) + Send + Sync + 'static) -> Self {
        let hear = Arc::new(hear);
        let config = config(limits).set_push_sender(move |heard: PushInfo| {
            hear(heard);
            Ok::<_, SendError>(())
        });
        Self { client, config, limits, heard: tokio::sync::Mutex::default() }
    }

    /// Subscribes to a channel, once; the driver does so again where a connection breaks or the slot moves.
    ///
    /// Nobody waits here for a server that somebody else's channel is on, nor loses what is heard where he gives up.
    pub(super) async fn listen(&self, channel: &[u8]) -> Result<(), Trouble> {
        let mut heard = self.connected().await?;
        if heard.channels().contains(channel) {
            return Ok(());
        }
        let subscribed = lent(timeout(self.limits.command, heard.connection.ssubscribe(channel)).await);
        match subscribed {
            Ok(()) => drop(heard.channels().insert(channel.to_owned())),
            // A server that is slow says nothing about the connections to the others.
            Err(Trouble::NoAnswer) => {}
            Err(_) => self.give_up(&heard).await,
        }
        subscribed
    }

    async fn connected(&self) -> Result<Heard, Trouble> {
        let mut heard = self.heard.lock().await;
        if let Some(heard) = &*heard {
            return Ok(heard.clone());
        }
        let connected = self.client.get_async_connection_with_config(self.config.clone());
        let connected = timeout(self.limits.connect, connected).await.map_err(|_| Trouble::NoConnection)?;
        let connection = connected.map_err(Trouble::Unsent)?;
        Ok(heard.insert(Heard { connection, channels: Arc::default() }).clone())
    }

    /// So that the next who waits makes others.
    async fn give_up(&self, failed: &Heard) {
        let mut heard = self.heard.lock().await;
        if heard.as_ref().is_some_and(|heard| Arc::ptr_eq(&heard.channels, &failed.channels)) {
            *heard = None;
        }
    }
}
