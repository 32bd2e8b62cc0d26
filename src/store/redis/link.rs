use std::{
    future::Future,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, Pipeline, ProtocolVersion, PushInfo, PushKind, RedisError, Value,
    aio::{ConnectionLike, MultiplexedConnection, SendError},
};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::{Instant, sleep_until, timeout},
};

use crate::value::Claimant;

use super::error::Trouble;

/// The pause after a first failed attempt to connect; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long a connection to a server that takes no writes is kept at least.
const REPLICA: Duration = Duration::from_secs(1);

/// How long things may take.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    pub(super) command: Duration,
}

/// Where a connection leads.
pub(super) enum Source {
    One(Box<Client>),
    #[cfg(feature = "redis-sentinel")]
    Sentinels(Arc<super::sentinel::Watched>),
}

impl Source {
    async fn connect(&self, config: &AsyncConnectionConfig) -> Result<MultiplexedConnection, RedisError> {
        match self {
            Self::One(client) => client.get_multiplexed_async_connection_with_config(config).await,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(watched) => {
                watched.master().await?.get_multiplexed_async_connection_with_config(config).await
            }
        }
    }

    /// Whether it tells of a connection that is closed.
    fn tells(&self) -> bool {
        match self {
            Self::One(client) => client.get_connection_info().redis_settings().protocol() != ProtocolVersion::RESP2,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(_) => true,
        }
    }
}

/// One connection that all callers share, made anew when it breaks.
///
/// It is made when a caller needs it, and those who come meanwhile wait for what is found. So a caller knows whether its
/// command was sent, and a server that is away is asked no more often than the pauses say.
pub(super) struct Link {
    source: Source,
    /// Takes what comes without having been asked for.
    hear: Option<Arc<dyn Fn(PushInfo) + Send + Sync>>,
    limits: Limits,
    live: RwLock<Option<Live>>,
    /// How often a connection was tried for.
    tries: AtomicU64,
    dial: Arc<Mutex<Dial>>,
    /// How many commands were answered, on any connection.
    answers: AtomicU64,
}

#[derive(Clone)]
pub(super) struct Live {
    pub(super) connection: MultiplexedConnection,
    /// The number of this connection.
    pub(super) number: u64,
    since: Instant,
}

/// What the last attempts to connect came to.
#[derive(Default)]
struct Dial {
    failures: u32,
    not_before: Option<Instant>,
    error: Option<RedisError>,
}

impl Link {
    pub(super) fn new(source: Source, limits: Limits) -> Self {
        Self {
            source,
            hear: None,
            limits,
            live: RwLock::default(),
            tries: AtomicU64::new(0),
            dial: Arc::default(),
            answers: AtomicU64::new(0),
        }
    }

    /// The same with somebody who hears messages.
    pub(super) fn heard_by(self, hear: impl Fn(PushInfo) + Send + Sync + 'static) -> Self {
        Self { hear: Some(Arc::new(hear)), ..self }
    }

    pub(super) async fn command(self: &Arc<Self>, command: &Cmd) -> Result<Value, Trouble> {
        let Live { mut connection, number, since } = self.connected().await?;
        let answer = self.answered(number, connection.req_packed_command(command)).await;
        if answer.as_ref().map_or_else(Trouble::is_read_only, is_read_only) {
            self.look_elsewhere(number, since);
        }
        answer
    }

    pub(super) async fn pipeline(
        self: &Arc<Self>,
        pipeline: &Pipeline,
        skip: usize,
        keep: usize,
    ) -> Result<Vec<Value>, Trouble> {
        let Live { mut connection, number, since } = self.connected().await?;
        let answers = self.answered(number, connection.req_packed_commands(pipeline, skip, keep)).await;
        if answers.as_ref().map_or_else(Trouble::is_read_only, |answers| answers.iter().any(is_read_only)) {
            self.look_elsewhere(number, since);
        }
        answers
    }

    /// A server that takes no writes may have been the master, which another one is by now. Whoever means a replica is
    /// not made to connect at each refusal.
    fn look_elsewhere(&self, number: u64, since: Instant) {
        if since.elapsed() >= REPLICA {
            self.give_up(number);
        }
    }

    /// The connection, made if there is none.
    pub(super) async fn connected(self: &Arc<Self>) -> Result<Live, Trouble> {
        if let Some(live) = self.live() {
            return Ok(live);
        }
        let limit = self.limits.connect.saturating_add(LONGEST_PAUSE);
        timeout(limit, self.connect()).await.unwrap_or(Err(Trouble::NoConnection))
    }

    /// Gives up the connection of this number, so that the next command makes another.
    pub(super) fn give_up(&self, number: u64) {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        if live.as_ref().is_some_and(|live| live.number == number) {
            *live = None;
        }
    }

    fn live(&self) -> Option<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn connect(self: &Arc<Self>) -> Result<Live, Trouble> {
        let before = self.tries.load(Relaxed);
        let dial = Arc::clone(&self.dial).lock_owned().await;
        if let Some(live) = self.live() {
            return Ok(live);
        }
        if self.tries.load(Relaxed) > before
            && let Some(error) = dial.error.clone()
        {
            return Err(Trouble::Unsent(error));
        }
        // A task of its own goes on where its caller gives up: callers in a hurry could else never come through.
        match tokio::spawn(Arc::clone(self).dial(dial)).await {
            Ok(connected) => connected.map_err(Trouble::Unsent),
            Err(_) => Err(Trouble::NoConnection),
        }
    }

    async fn dial(self: Arc<Self>, mut dial: OwnedMutexGuard<Dial>) -> Result<Live, RedisError> {
        if let Some(moment) = dial.not_before {
            sleep_until(moment).await;
        }
        let number = self.tries.load(Relaxed) + 1;
        let config = self.config(number);
        // Asking sentinels first, it takes several connections; each has the same limit.
        let limit = self.limits.connect.saturating_mul(3);
        let connected = timeout(limit, self.source.connect(&config)).await.unwrap_or_else(|_| Err(late()));
        self.tries.store(number, Relaxed);
        match connected {
            Ok(connection) => {
                let live = Live { connection, number, since: Instant::now() };
                *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(live.clone());
                *dial = Dial::default();
                Ok(live)
            }
            Err(error) => {
                let pause = PAUSE.saturating_mul(1 << dial.failures.min(5)).min(LONGEST_PAUSE);
                dial.failures += 1;
                dial.not_before = Some(Instant::now() + jitter(pause));
                dial.error = Some(error.clone());
                Err(error)
            }
        }
    }

    /// A connection that is closed, while nobody uses it maybe, gives itself up. Only the third version of the protocol
    /// tells; otherwise the next command finds out.
    fn config(self: &Arc<Self>, number: u64) -> AsyncConnectionConfig {
        // The limit for an answer is kept here, where it is known what was sent.
        let config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(Some(self.limits.connect));
        if !self.source.tells() {
            return config;
        }
        let (link, hear) = (Arc::downgrade(self), self.hear.clone());
        config.set_push_sender(move |heard: PushInfo| {
            if heard.kind == PushKind::Disconnection
                && let Some(link) = link.upgrade()
            {
                link.give_up(number);
            }
            if let Some(hear) = &hear {
                hear(heard);
            }
            Ok::<_, SendError>(())
        })
    }

    /// Waits for an answer. A connection that broke is given up, and one on which nothing at all was answered meanwhile.
    async fn answered<T>(
        &self,
        number: u64,
        answer: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, Trouble> {
        let before = self.answers.load(Relaxed);
        match timeout(self.limits.command, answer).await {
            Ok(Ok(answer)) => {
                self.answers.fetch_add(1, Relaxed);
                Ok(answer)
            }
            Ok(Err(error)) => {
                if error.is_unrecoverable_error() {
                    self.give_up(number);
                }
                Err(Trouble::Failed(error))
            }
            Err(_) => {
                if self.answers.load(Relaxed) == before {
                    self.give_up(number);
                }
                Err(Trouble::NoAnswer)
            }
        }
    }
}

fn is_read_only(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.code() == "READONLY")
}

fn late() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

/// Between a half and the whole of `time`, so that many who wait do not come back at once.
pub(super) fn jitter(time: Duration) -> Duration {
    let [random, ..] = Claimant::random().to_bytes();
    time / 2 + time * u32::from(random) / 512
}
