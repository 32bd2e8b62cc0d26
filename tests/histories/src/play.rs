//! A history from beginning to end: servers and services come up, clients ask, there are faults, all is healed, everything
//! is asked once more, and what was recorded is checked.

use std::{env, error::Error, fs, path::PathBuf, sync::Arc};

use tokio::{
    sync::{Mutex, watch},
    time::Instant,
    try_join,
};

use crate::{
    check::{Report, check},
    clients::{Load, ask_once_more, drive},
    history::{Line, Log, Mode, parse},
    nemesis::{Schedule, Stage, Track, play as strike},
    proxy::Proxy,
    random::Random,
    servers::{Kind, Place},
    service::{Settings, transfer::Transfer},
    services::Supervised,
    time::millis,
};

const SERVICES: usize = 3;

/// What the command line says.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) store: Kind,
    pub(crate) seed: u64,
    /// How many operations begin at most, for how many seconds, and how many in a second.
    pub(crate) operations: usize,
    pub(crate) seconds: Option<u64>,
    pub(crate) pace: u64,
    pub(crate) lease: u64,
    /// The folder of the history.
    pub(crate) folder: PathBuf,
    /// The programs of the services: all begin with the first one, and each start takes the next one. So versions stand
    /// side by side, and services go from one to the other.
    pub(crate) binaries: Vec<PathBuf>,
}

/// Plays a history, and checks it.
pub(crate) async fn play(options: &Options) -> Result<Report, Box<dyn Error>> {
    let Options { store, seed, lease, folder, .. } = options;
    fs::create_dir_all(folder)?;
    let path = folder.join("history");
    let _ = fs::remove_file(&path);
    let log = Arc::new(Log::open(&path)?);
    log.add(Line::Lease(*lease));
    log.watch("host");
    let stage = Arc::new(set_up(options, Arc::clone(&log)).await?);

    let (end, ends) = watch::channel(false);
    let tracks = [Track::Services, Track::LinksAndStore].map(|track| {
        let schedule = Schedule::new(*seed, track.faults(*store), SERVICES, *lease);
        tokio::spawn(strike(Arc::clone(&stage), schedule, ends.clone()))
    });
    let mut modes = Mode::ALL.to_vec();
    modes.retain(|mode| *mode != Mode::Transfer || store.is_database());
    let until = options.seconds.map(|seconds| Instant::now() + millis(seconds * 1_000));
    let load =
        Load { seed: *seed, modes, lease: *lease, pace: options.pace, operations: options.operations, end: until };
    let keys = drive(load, &stage).await;
    end.send_replace(true);
    for track in tracks {
        track.await??;
    }

    log.add(Line::Healed);
    ask_once_more(*seed, &keys, &stage).await;
    add_rows(*store, &stage).await?;
    for service in &stage.services {
        service.kill().await;
    }
    let mut report = check(&parse(&fs::read_to_string(&path)?)?);
    for service in stage.services.iter().filter(|service| service.crashes() > 0) {
        report.complain("a process that ended by itself", &service.name, &service.crashes());
    }
    Ok(report)
}

async fn set_up(options: &Options, log: Arc<Log>) -> Result<Stage, Box<dyn Error>> {
    let Options { store, seed, lease, folder, binaries, .. } = options;
    let folder_of_server = env::temp_dir().join(format!("histories-{}-{}", store.name(), std::process::id()));
    let place = Place::start(*store, &folder_of_server).await?;
    let (mut services, mut proxies) = (Vec::new(), Vec::new());
    for number in 0..SERVICES {
        let proxy = Proxy::to(place.port().unwrap_or_default()).await?;
        let settings = Settings {
            name: format!("s{number}"),
            store: place.url(proxy.port),
            log: folder.join("history"),
            lease: *lease,
            clock: 0,
        };
        services.push(Supervised::new(binaries.clone(), settings));
        proxies.push(proxy);
    }
    let mut clocks = [0, 300, -300];
    Random::new(*seed, "clocks").shuffle(&mut clocks);
    try_join!(services[0].start(clocks[0]), services[1].start(clocks[1]), services[2].start(clocks[2]))?;
    Ok(Stage { services, proxies, place: Mutex::new(place), log })
}

async fn add_rows(store: Kind, stage: &Stage) -> Result<(), Box<dyn Error>> {
    let place = stage.place.lock().await;
    let url = place.url(place.port().unwrap_or_default());
    let rows = match store {
        Kind::Postgres => sqlx::Postgres::rows(&url).await?,
        Kind::MariaDb => sqlx::MySql::rows(&url).await?,
        Kind::Redis | Kind::Sentinel | Kind::Cluster | Kind::Memory => return Ok(()),
    };
    for (key, execution) in rows {
        stage.log.add(Line::Row { key, execution });
    }
    Ok(())
}
