//! Answers are counted for each of 64 parts of the slots, since one server may hang while the others answer. At most
//! one replacement is under way; it begins no more often than twice the patience.

use std::{future::Future, sync::Arc};

use redis::{
    RedisError,
    cluster::{ClusterClient, ClusterConfig},
    cluster_async::ClusterConnection,
};
use tokio::{
    runtime::Handle,
    sync::{Mutex, watch},
    time::{sleep, timeout},
};

use crate::store::redis::{
    connection::{
        answers::{Answers, SILENCE_LIMIT},
        slot,
        wire::Limits,
    },
    error::CommandError,
};

/// The number of parts of the slots for which answers are counted separately. Except at the edges, a part belongs to
/// one server.
const SLOT_GROUPS: u16 = 64;
const SLOTS: u16 = 16_384;

/// The driver's connections to the servers of a cluster, replaced if they do not answer.
///
/// While it queries which server has which slots, the driver (`redis` 1.8) does nothing else. It may then wait for a
/// lock that was granted to one of its own requests, whose poll ended too early: for ever, although all servers are
/// available. It also goes on querying a server that hangs, although another has taken its place. So new connections
/// are opened in parallel, and take over once they are ready: a wrong suspicion delays no request.
pub(in crate::store::redis) struct ClusterDriver {
    client: ClusterClient,
    limits: Limits,
    /// The current connections; a change aborts commands that wait on the former ones.
    current: watch::Sender<ClusterConnection>,
    /// The answers of all servers together.
    answers: Answers,
    /// The answers by slots: one server may hang while the others answer.
    by_slots: Vec<Answers>,
    /// Held while new connections are opened, and for a moment afterwards.
    replacing: Arc<Mutex<()>>,
}

impl ClusterDriver {
    /// Opens the first connections.
    pub(in crate::store::redis) async fn start(
        client: ClusterClient,
        limits: Limits,
    ) -> Result<Arc<Self>, CommandError> {
        let current = watch::Sender::new(connect(&client, config(limits), limits).await?);
        let by_slots = (0..SLOT_GROUPS).map(|_| Answers::default()).collect();
        let (answers, replacing) = (Answers::default(), Arc::default());
        Ok(Arc::new(Self { client, limits, current, answers, by_slots, replacing }))
    }

    /// Returns the connection for commands, and the receiver that is notified when it is replaced.
    pub(in crate::store::redis) fn current(&self) -> (ClusterConnection, watch::Receiver<ClusterConnection>) {
        let mut current = self.current.subscribe();
        let connection = current.borrow_and_update().clone();
        (connection, current)
    }

    /// Waits for the answer to a command on a name, or on none. If the connections are replaced meanwhile, the command
    /// is aborted.
    pub(in crate::store::redis) async fn answered<T>(
        self: &Arc<Self>,
        name: Option<&[u8]>,
        mut current: watch::Receiver<ClusterConnection>,
        answer: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, CommandError> {
        let replaced = async { drop(current.changed().await) };
        let part = name.and_then(|name| self.by_slots.get(usize::from(slot::of(name) / (SLOTS / SLOT_GROUPS))));
        let answer = part.unwrap_or(&self.answers).wait(self.limits.command, answer, replaced, || self.replace()).await;
        if matches!(answer, Err(CommandError::NoAnswer)) {
            self.replace();
        }
        answer
    }

    /// Connects anew, unless that is under way or was done just now.
    ///
    /// The former connections are not closed: commands that are under way on them are aborted by the change of `current`,
    /// and the last clone closes them.
    fn replace(self: &Arc<Self>) {
        let replacing = Arc::clone(&self.replacing).try_lock_owned();
        let (Ok(replacing), Ok(runtime)) = (replacing, Handle::try_current()) else { return };
        let driver = Arc::clone(self);
        runtime.spawn(async move {
            if let Ok(connection) = connect(&driver.client, config(driver.limits), driver.limits).await {
                driver.current.send_replace(connection);
            }
            sleep(SILENCE_LIMIT * 2).await;
            drop(replacing);
        });
    }
}

/// Opens connections within the connect timeout.
pub(in crate::store::redis) async fn connect(
    client: &ClusterClient,
    config: ClusterConfig,
    limits: Limits,
) -> Result<ClusterConnection, CommandError> {
    match timeout(limits.connect, client.get_async_connection_with_config(config)).await {
        Ok(connected) => connected.map_err(CommandError::NotSent),
        Err(_) => Err(CommandError::NoConnection),
    }
}

/// Returns the driver's configuration. A server that hangs is waited for twice: when the first are connected, and when
/// all are.
pub(in crate::store::redis) fn config(limits: Limits) -> ClusterConfig {
    ClusterConfig::new().set_connection_timeout(limits.connect / 3).set_response_timeout(limits.command)
}
