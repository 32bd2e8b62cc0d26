//! What a service holds after much has come and gone: memory, tasks, descriptors.
//!
//! - `usage`: what is measured
//! - `traffic`: what comes and goes: idle keys, waiters, background tasks, slow readers and writers

mod traffic;
mod usage;

use std::{env, error::Error, fs, path::PathBuf, sync::Arc, time::Duration};

use tokio::{sync::Mutex, task::JoinHandle, time::sleep};

use self::{traffic::Traffic, usage::Usage};
use crate::{
    history::Log,
    servers::{Kind, Server},
    service::Settings,
    services::Supervised,
    time::{now, pause},
};

/// What the command line says.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) store: Kind,
    pub(crate) keys: usize,
    pub(crate) waiters: usize,
    pub(crate) background: usize,
    pub(crate) slow: usize,
    /// How long the work lasts, in milliseconds.
    pub(crate) work: u64,
    /// How many times all of it comes and goes.
    pub(crate) rounds: usize,
    /// The pause between two restarts of the store, in seconds.
    pub(crate) restart: u64,
    pub(crate) folder: PathBuf,
}

/// By how much more may be allocated, and how much more memory there may be, beside a half: connections to databases keep
/// buffers for the largest answer, and an allocator keeps what it had to provide at once.
const HEAP: u64 = 1 << 20;
const MEMORY: u64 = 128 << 20;
/// How many more descriptors there may be than at first: connections of a pool that has grown.
const DESCRIPTORS: usize = 24;
/// How many more tasks there may be: those that look after connections of clients and of the store.
const TASKS: usize = 24;

/// Lets everything come and go, and measures after each time. Returns an error if something grows.
pub(crate) async fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let Options { store, folder, keys, rounds, .. } = options;
    fs::create_dir_all(folder)?;
    let log = folder.join("history");
    let _ = fs::remove_file(&log);
    drop(Log::open(&log)?);
    let place = env::temp_dir().join(format!("resources-{}-{}", store.name(), std::process::id()));
    let server = Server::start(*store, &place).await?;
    let settings = Settings { name: "s0".into(), store: server.url(server.port), log, lease: 3_000, clock: 0 };
    let service = Supervised::new(vec![env::current_exe()?], settings);
    service.start(0).await?;
    let (port, process) = service.port().zip(service.id().await).ok_or("the service is gone")?;
    let traffic = Traffic { port, seed: now(), work: options.work };

    traffic.keys("warm", 1_000).await?;
    let mut usages = vec![settled(port, process, None).await?];
    for part in 1..=4 {
        traffic.keys(&format!("idle-{part}"), keys / 4).await?;
        let usage = settled(port, process, usages.first()).await?;
        println!("{:>7} idle keys  {usage}", keys * part / 4);
        usages.push(usage);
    }
    grown(&usages[1..])?;

    let restarting = restarts(Arc::new(Mutex::new(server)), options.restart);
    let mut usages = vec![usages[0]];
    for round in 1..=*rounds {
        let waited = traffic.waiters(&format!("wait-{round}"), options.waiters).await?;
        let left = traffic.leave(&format!("left-{round}"), options.background).await?;
        let slow = traffic.slow(&format!("slow-{round}"), options.slow).await?;
        let usage = settled(port, process, usages.first()).await?;
        println!("round {round}  {usage}  after {waited}; {left}; {slow}");
        usages.push(usage);
    }
    restarting.abort();
    grown(&usages[1..])?;
    Ok(())
}

/// Measures once what has come is gone.
async fn settled(port: u16, process: u32, first: Option<&Usage>) -> Result<Usage, Box<dyn Error>> {
    let began = now();
    loop {
        pause(500).await;
        let Ok(usage) = Usage::of(port, process).await else { continue };
        let is_over = usage.background == 0
            && first.is_none_or(|first| {
                usage.tasks <= first.tasks + TASKS && usage.descriptors <= first.descriptors + DESCRIPTORS
            });
        if is_over {
            return Ok(usage);
        }
        if now() > began + 60_000 {
            return Err(format!("it does not come to rest: {usage}; at first {first:?}").into());
        }
    }
}

/// The last measure has no more than the first ones.
fn grown(usages: &[Usage]) -> Result<(), String> {
    let heap: Vec<_> = usages.iter().map(|usage| usage.heap).collect();
    let memory: Vec<_> = usages.iter().map(|usage| usage.memory).collect();
    for (name, sizes, spare) in [("heap", heap, HEAP), ("memory", memory, MEMORY)] {
        let (early, late) = sizes.split_at(sizes.len().div_ceil(2));
        let (most, last) = (early.iter().max().copied().unwrap_or_default(), late.last().copied().unwrap_or_default());
        if last > most + most / 2 + spare {
            return Err(format!("the {name} has grown from {most} to {last} bytes"));
        }
    }
    Ok(())
}

/// Kills the store and starts it again, now and then.
fn restarts(server: Arc<Mutex<Server>>, seconds: u64) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_secs(seconds)).await;
            let mut server = server.lock().await;
            server.kill();
            pause(200).await;
            if let Err(error) = server.start_again().await {
                println!("the store does not start again: {error}");
                return;
            }
        }
    })
}

#[test]
fn what_grows_is_found() {
    let usage = |heap: u64, memory: u64| Usage { heap: heap << 20, memory: memory << 20, ..Usage::default() };
    assert!(grown(&[usage(10, 100), usage(10, 120), usage(11, 119), usage(15, 300)]).is_ok());
    assert!(grown(&[usage(10, 100), usage(10, 120), usage(11, 140), usage(11, 310)]).is_err());
    assert!(grown(&[usage(10, 100), usage(10, 120), usage(15, 120), usage(17, 120)]).is_err());
    assert!(grown(&[usage(10, 100)]).is_ok());
}
