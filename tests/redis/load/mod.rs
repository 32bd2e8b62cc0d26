//! Two processes ask for the same operations, each until it has an answer, while servers are paused, killed and cut off.
//! Everything is written down. An effect that comes twice has to be traced to what happened to a server.

#[cfg(feature = "redis-cluster")]
mod cluster;
#[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
mod failover;
mod log;
mod process;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod single_server;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Each process asks for at least so many operations.
const KEYS: usize = 600;
const LEASE: Duration = Duration::from_secs(2);
/// Renewals come every third of a lease, so a claim has at least this much of it left whenever the server goes away.
const LEFT: Duration = Duration::from_millis(1_300);
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// The processes. They are ended when this is dropped, after a failed test too.
struct Load {
    processes: Vec<Child>,
    log: PathBuf,
}

impl Load {
    /// In so many lanes, each of which goes on where others do not.
    fn start(url: &str, folder: &Path, lanes: u32) -> Self {
        let log = folder.join("load.log");
        let processes = (0..2).map(|_| process(url, &log, lanes)).collect();
        Self { processes, log }
    }

    /// Lets them end what they have begun; gives all that was written down.
    fn end(mut self) -> String {
        let began = Instant::now();
        for process in &mut self.processes {
            drop(process.stdin.take());
        }
        for process in &mut self.processes {
            while process.try_wait().unwrap().is_none() {
                assert!(began.elapsed() < Duration::from_secs(120), "a process does not come to an end");
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(process.wait().unwrap().success(), "a process failed");
        }
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// This test's own program, which goes on until its input ends.
fn process(url: &str, log: &Path, lanes: u32) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "load::process::process", "--ignored"])
        .env("LOAD_SERVER", url)
        .env("LOAD_LOG", log)
        .env("LOAD_LANES", lanes.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}
