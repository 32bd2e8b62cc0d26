//! A service process: the layer in four modes on one store, and a handler whose effects are recorded in the history.
//!
//! - `handler`: what a request asks for, and what is done
//! - `transfer`: the mode whose effect is a row of the database
//! - `answer`: the text of an answer, by which a client recognises it

pub(crate) mod answer;
pub(crate) mod handler;
pub(crate) mod transfer;

use std::{
    alloc::System,
    error::Error,
    io::{self, Write},
    net::Ipv4Addr,
    path::PathBuf,
    process,
    sync::{Arc, atomic::AtomicU64},
    thread,
};

use axum::{
    Router,
    extract::Request,
    middleware::map_request,
    routing::{get, post},
    serve::ListenerExt,
};
use cap::Cap;
use tokio::{net::TcpSocket, runtime::Handle};
use tower_idempotency::{
    AfterCrash, BackgroundTasks, IdempotencyLayer, Keep, MemoryStore, MySqlStore, PostgresStore, RedisStore,
    WhileRunning,
};

use self::{
    handler::{Asked, handle},
    transfer::Transfer,
};
use crate::{
    history::{Line, Log},
    time::{millis, now, pause},
};

const STORE_TIMEOUT: u64 = 2_000;
const CONNECTIONS: u32 = 16;

/// Counts what is allocated: an allocator does not return all of it to the operating system.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// What the command line of a service process says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) store: String,
    pub(crate) log: PathBuf,
    pub(crate) lease: u64,
    /// How far its clock is off, in seconds. It is only recorded.
    pub(crate) clock: i64,
}

impl Settings {
    pub(crate) fn arguments(&self) -> Vec<String> {
        let Self { name, store, log, lease, clock } = self;
        let log = log.display().to_string();
        vec!["service".into(), name.clone(), store.clone(), log, lease.to_string(), clock.to_string()]
    }

    pub(crate) fn parse(words: &[String]) -> Option<Self> {
        let [name, store, log, lease, clock] = words else { return None };
        let (lease, clock) = (lease.parse().ok()?, clock.parse().ok()?);
        Some(Self { name: name.clone(), store: store.clone(), log: log.into(), lease, clock })
    }
}

/// What the handlers share.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    log: Arc<Log>,
    began: u64,
    executions: AtomicU64,
}

/// Serves until the process is killed, or the one that started it has ended. Prints its port once it can serve.
pub(crate) async fn serve(settings: Settings) -> Result<(), Box<dyn Error>> {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(0);
    });
    let log = Arc::new(Log::open(&settings.log)?);
    log.watch(&settings.name);
    let service =
        Service { name: settings.name.clone(), log: Arc::clone(&log), began: now(), executions: AtomicU64::default() };
    let background = BackgroundTasks::new();
    let app = loop {
        match routes(&settings, &background).await {
            Ok(routes) => break routes.with_state(Arc::new(service)),
            // The store is away.
            Err(_) => pause(200).await,
        }
    };
    let resources = async move || {
        let tasks = Handle::current().metrics().num_alive_tasks();
        format!("{} {tasks} {}", HEAP.allocated(), background.count())
    };
    let app = app.route("/resources", get(resources)).layer(map_request(async |mut request: Request| {
        request.extensions_mut().insert(Asked(now()));
        request
    }));
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(4_096)?;
    log.add(Line::Up { service: settings.name, clock: settings.clock });
    println!("{}", listener.local_addr()?.port());
    io::stdout().flush()?;
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    Ok(axum::serve(listener, app).await?)
}

async fn routes(settings: &Settings, background: &BackgroundTasks) -> Result<Router<Arc<Service>>, Box<dyn Error>> {
    let url = &settings.store;
    let told = |layer: IdempotencyLayer| {
        let layer = layer.lease(millis(settings.lease)).store_timeout(millis(STORE_TIMEOUT));
        layer.background_tasks(background.clone())
    };
    match url.split(':').next() {
        Some("postgres") => {
            let store = PostgresStore::builder().max_connections(CONNECTIONS).connect(url).await?;
            store.migrate().await?;
            let transfer = sqlx::Postgres::route(&store, told(IdempotencyLayer::transactional(store.clone()))).await?;
            Ok(modes(told(IdempotencyLayer::new(store))).merge(transfer))
        }
        Some("mysql") => {
            let store = MySqlStore::builder().max_connections(CONNECTIONS).connect(url).await?;
            store.migrate().await?;
            let transfer = sqlx::MySql::route(&store, told(IdempotencyLayer::transactional(store.clone()))).await?;
            Ok(modes(told(IdempotencyLayer::new(store))).merge(transfer))
        }
        Some("memory") => Ok(modes(told(IdempotencyLayer::new(MemoryStore::new())))),
        _ => Ok(modes(told(IdempotencyLayer::new(RedisStore::connect(url).await?)))),
    }
}

/// The modes that any store serves.
fn modes(layer: IdempotencyLayer) -> Router<Arc<Service>> {
    let wait = layer.clone().while_running(WhileRunning::Wait(millis(3_000)));
    let patient = layer.clone().while_running(WhileRunning::Wait(millis(60_000)));
    let once = layer.clone().keep(Keep::EVERYTHING).after_crash(AfterCrash::Never);
    Router::new()
        .route("/replay", post(handle).layer(layer))
        .route("/wait", post(handle).layer(wait))
        .route("/patient", post(handle).layer(patient))
        .route("/once", post(handle).layer(once))
}
