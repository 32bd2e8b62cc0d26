use std::{collections::HashSet, sync::Arc};

use redis::{
    PushInfo,
    aio::SendError,
    cluster::{ClusterClient, ClusterConfig},
    cluster_async::ClusterConnection,
};
use tokio::{sync::Mutex, time::timeout};

use super::driver::{config, connect};
use crate::store::redis::{error::Trouble, line::lent, link::Limits};

/// Hears what is published in the slots of a cluster, on connections of its own.
pub(in crate::store::redis) struct Ears {
    client: ClusterClient,
    config: ClusterConfig,
    limits: Limits,
    heard: Mutex<Option<(ClusterConnection, HashSet<Vec<u8>>)>>,
}

impl Ears {
    pub(in crate::store::redis) fn new(
        client: ClusterClient,
        limits: Limits,
        hear: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Self {
        let hear = Arc::new(hear);
        let config = config(limits).set_push_sender(move |heard: PushInfo| {
            hear(heard);
            Ok::<_, SendError>(())
        });
        Self { client, config, limits, heard: Mutex::default() }
    }

    /// Subscribes to a channel, once; the driver does so again where a connection breaks or the slot moves.
    pub(in crate::store::redis) async fn listen(&self, channel: &[u8]) -> Result<(), Trouble> {
        let mut heard = self.heard.lock().await;
        let (mut connection, mut channels) = if let Some(heard) = heard.take() {
            heard
        } else {
            (connect(&self.client, self.config.clone(), self.limits).await?, HashSet::new())
        };
        if !channels.contains(channel) {
            // On failure the connection is dropped, and made anew by the next who waits.
            lent(timeout(self.limits.command, connection.ssubscribe(channel)).await)?;
            channels.insert(channel.to_owned());
        }
        *heard = Some((connection, channels));
        Ok(())
    }
}
