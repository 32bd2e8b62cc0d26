//! Histories: service processes on one store, clients that retry, and faults between them. What happened is recorded,
//! and a checker that knows only what is promised judges it.
//!
//! ```console
//! $ cargo run -p histories -- play redis --operations 1000 --seed 7
//! $ cargo run -p histories -- check target/histories/redis/history
//! $ cargo run -p histories -- resources postgres --rounds 10
//! ```

mod check;
mod clients;
#[path = "../../redis/sentinel/group.rs"]
mod group;
mod history;
mod nemesis;
#[allow(dead_code, reason = "the tests of the Redis store use more of it")]
#[path = "../../redis/cluster/nodes.rs"]
mod nodes;
mod play;
mod proxy;
mod random;
mod resources;
#[allow(dead_code, reason = "the tests of the Redis store use more of it")]
#[path = "../../redis/server.rs"]
mod server;
mod servers;
mod service;
mod services;
mod time;

use std::{env, error::Error, fs, path::PathBuf, process::ExitCode};

use self::{
    check::{Report, check},
    play::Options,
    service::Settings,
};

const USAGE: &str = "usage:
  histories play STORE [--operations N] [--seconds S] [--seed N] [--pace N] [--lease MS] [--folder PATH]
      [--service PROGRAM]...
  histories check FILE
  histories resources STORE [--keys N] [--waiters N] [--background N] [--slow N] [--work MS] [--rounds N]
      [--restart SECONDS] [--folder PATH]";

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    match run(&words).await {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(report)) => {
            print!("{report}");
            if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("histories: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(words: &[String]) -> Result<Option<Report>, Box<dyn Error>> {
    match words {
        [verb, rest @ ..] if verb == "service" => {
            service::serve(Settings::parse(rest).ok_or(USAGE)?).await?;
            Ok(None)
        }
        [verb, store, rest @ ..] if verb == "play" => {
            let options = options(store, rest)?;
            println!("{}, seed {}, {}", store, options.seed, options.folder.display());
            play::play(&options).await.map(Some)
        }
        [verb, store, rest @ ..] if verb == "resources" => {
            resources::measure(&resources_options(store, rest)?).await?;
            Ok(None)
        }
        [verb, file] if verb == "check" => Ok(Some(check(&history::parse(&fs::read_to_string(file)?)?))),
        _ => Err(USAGE.into()),
    }
}

fn options(store: &str, words: &[String]) -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        store: store.parse()?,
        seed: time::now(),
        operations: usize::MAX,
        seconds: None,
        pace: 40,
        lease: 1_500,
        folder: PathBuf::from("target/histories").join(store),
        binaries: Vec::new(),
    };
    for pair in words.chunks(2) {
        let [flag, value] = pair else { return Err(USAGE.into()) };
        match &**flag {
            "--operations" => options.operations = value.parse()?,
            "--seconds" => options.seconds = Some(value.parse()?),
            "--seed" => options.seed = value.parse()?,
            "--pace" => options.pace = value.parse()?,
            "--lease" => options.lease = value.parse()?,
            "--folder" => options.folder = value.into(),
            "--service" => options.binaries.push(value.into()),
            _ => return Err(USAGE.into()),
        }
    }
    if options.operations == usize::MAX && options.seconds.is_none() {
        options.operations = 400;
    }
    if options.binaries.is_empty() {
        options.binaries.push(env::current_exe()?);
    }
    Ok(options)
}

fn resources_options(store: &str, words: &[String]) -> Result<resources::Options, Box<dyn Error>> {
    let mut options = resources::Options {
        store: store.parse()?,
        keys: 100_000,
        waiters: 10_000,
        background: 1_000,
        slow: 500,
        work: 3_000,
        rounds: 4,
        restart: 60,
        folder: PathBuf::from("target/resources").join(store),
    };
    for pair in words.chunks(2) {
        let [flag, value] = pair else { return Err(USAGE.into()) };
        match &**flag {
            "--keys" => options.keys = value.parse()?,
            "--waiters" => options.waiters = value.parse()?,
            "--background" => options.background = value.parse()?,
            "--slow" => options.slow = value.parse()?,
            "--work" => options.work = value.parse()?,
            "--rounds" => options.rounds = value.parse()?,
            "--restart" => options.restart = value.parse()?,
            "--folder" => options.folder = value.into(),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}
