//! Messages on a cluster. They are sharded: a message reaches the server of its slot only.
//!
//! The lock is held while the connections are opened, and not while a channel is subscribed to: a server that hangs
//! keeps only the waiters of its own slots from their messages, and those read their records instead.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redis::{
    PushInfo,
    aio::SendError,
    cluster::{ClusterClient, ClusterConfig},
    cluster_async::ClusterConnection,
};
use tokio::time::timeout;

use super::driver::{config, connect};
use crate::store::redis::{
    connection::wire::{Limits, map_timeout},
    error::CommandError,
};

/// Receives what is published in the slots of a cluster, on connections of its own.
pub(in crate::store::redis) struct ClusterSubscriber {
    client: ClusterClient,
    config: ClusterConfig,
    limits: Limits,
    /// The connections, once a request has waited.
    subscription: tokio::sync::Mutex<Option<Subscription>>,
}

/// Connections, and the channels that were subscribed to on them.
#[derive(Clone)]
struct Subscription {
    /// The connections, which receive messages.
    connection: ClusterConnection,
    /// The channels that are subscribed to.
    channels: Arc<Mutex<HashSet<Vec<u8>>>>,
}

impl Subscription {
    fn channels(&self) -> MutexGuard<'_, HashSet<Vec<u8>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterSubscriber {
    /// Creates it without a connection. `on_push` receives the messages.
    pub(in crate::store::redis) fn new(
        client: ClusterClient,
        limits: Limits,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Self {
        let on_push = Arc::new(on_push);
        let config = config(limits).set_push_sender(move |push: PushInfo| {
            on_push(push);
            Ok::<_, SendError>(())
        });
        Self { client, config, limits, subscription: tokio::sync::Mutex::default() }
    }

    /// Subscribes to a channel once; the driver subscribes again if a connection breaks or the slot moves.
    ///
    /// A caller does not wait for a server of another caller's channel, and no message is lost if a caller gives up.
    pub(in crate::store::redis) async fn listen(&self, channel: &[u8]) -> Result<(), CommandError> {
        let mut subscription = self.connected().await?;
        if subscription.channels().contains(channel) {
            return Ok(());
        }
        let subscribed = map_timeout(timeout(self.limits.command, subscription.connection.ssubscribe(channel)).await);
        match subscribed {
            Ok(()) => drop(subscription.channels().insert(channel.to_owned())),
            // A slow server proves nothing about the connections to the others.
            Err(CommandError::NoAnswer) => {}
            Err(_) => self.give_up(&subscription).await,
        }
        subscribed
    }

    /// Returns the connections, opened if they do not exist.
    async fn connected(&self) -> Result<Subscription, CommandError> {
        let mut subscription = self.subscription.lock().await;
        if let Some(subscription) = &*subscription {
            return Ok(subscription.clone());
        }
        let connection = connect(&self.client, self.config.clone(), self.limits).await?;
        Ok(subscription.insert(Subscription { connection, channels: Arc::default() }).clone())
    }

    /// Gives the connections up, so that the next waiter opens others.
    async fn give_up(&self, failed: &Subscription) {
        let mut subscription = self.subscription.lock().await;
        if subscription.as_ref().is_some_and(|subscription| Arc::ptr_eq(&subscription.channels, &failed.channels)) {
            *subscription = None;
        }
    }
}
