use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use redis::{
    RedisError,
    cluster::{ClusterClient, ClusterConfig},
    cluster_async::ClusterConnection,
};
use tokio::{
    sync::{Mutex, watch},
    time::{sleep, timeout},
};

use crate::store::redis::{error::Trouble, line::lent, link::Limits};

/// If so long after a command was sent nothing at all has been answered, the driver is suspected to stand still.
const PATIENCE: Duration = Duration::from_millis(250);

/// The driver's connections to the servers of a cluster, made anew where they come to nothing.
///
/// While it asks who has which slots, the driver (`redis` 1.8) does nothing else, and may then wait for a lock that one
/// of its own requests was given in a turn that ended too early: for ever, with all servers there. It also goes on
/// asking a server that hangs, although another has taken its place. So others are connected beside, and take over when
/// they are there: a suspicion that was wrong costs no request anything.
pub(super) struct Driver {
    client: ClusterClient,
    limits: Limits,
    live: watch::Sender<ClusterConnection>,
    /// How many commands were answered, on any connection.
    answers: AtomicU64,
    replacing: Arc<Mutex<()>>,
}

impl Driver {
    pub(super) async fn start(client: ClusterClient, limits: Limits) -> Result<Arc<Self>, Trouble> {
        let live = watch::Sender::new(connect(&client, config(limits), limits).await?);
        Ok(Arc::new(Self { client, limits, live, answers: AtomicU64::new(0), replacing: Arc::default() }))
    }

    /// What commands are sent on, and what tells when it is replaced.
    pub(super) fn live(&self) -> (ClusterConnection, watch::Receiver<ClusterConnection>) {
        let mut live = self.live.subscribe();
        let connection = live.borrow_and_update().clone();
        (connection, live)
    }

    /// Waits for an answer. Where the connections are replaced meanwhile, the command is cut off.
    pub(super) async fn answered<T>(
        self: &Arc<Self>,
        live: watch::Receiver<ClusterConnection>,
        answer: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, Trouble> {
        let before = self.answers.load(Relaxed);
        let answer = async {
            let answer = answer.await;
            self.answers.fetch_add(1, Relaxed);
            answer
        };
        let mut answer = pin!(unless_replaced(answer, live));
        let patience = PATIENCE.min(self.limits.command);
        if let Ok(answer) = timeout(patience, answer.as_mut()).await {
            return answer.map_err(Trouble::Failed);
        }
        if self.answers.load(Relaxed) == before {
            self.replace();
        }
        let answer = timeout(self.limits.command.saturating_sub(patience), answer).await;
        if answer.is_err() {
            self.replace();
        }
        lent(answer)
    }

    /// Connects anew, unless that is being done or was just now.
    fn replace(self: &Arc<Self>) {
        let Ok(replacing) = Arc::clone(&self.replacing).try_lock_owned() else { return };
        let driver = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(connection) = connect(&driver.client, config(driver.limits), driver.limits).await {
                driver.live.send_replace(connection);
            }
            sleep(PATIENCE * 2).await;
            drop(replacing);
        });
    }
}

async fn unless_replaced<T>(
    answer: impl Future<Output = Result<T, RedisError>>,
    mut live: watch::Receiver<ClusterConnection>,
) -> Result<T, RedisError> {
    let (mut answer, mut replaced) = (pin!(answer), pin!(live.changed()));
    poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Pending if replaced.as_mut().poll(cx).is_ready() => {
            Poll::Ready(Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()))
        }
        answer => answer,
    })
    .await
}

pub(super) async fn connect(
    client: &ClusterClient,
    config: ClusterConfig,
    limits: Limits,
) -> Result<ClusterConnection, Trouble> {
    match timeout(limits.connect, client.get_async_connection_with_config(config)).await {
        Ok(connected) => connected.map_err(Trouble::Unsent),
        Err(_) => Err(Trouble::NoConnection),
    }
}

/// A server that hangs is waited for twice, when the first are connected and when all are.
pub(super) fn config(limits: Limits) -> ClusterConfig {
    ClusterConfig::new().set_connection_timeout(limits.connect / 3).set_response_timeout(limits.command)
}
