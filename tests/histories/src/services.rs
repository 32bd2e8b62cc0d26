//! The service processes of a history: started, killed, stopped.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{Mutex, oneshot};

use crate::service::Settings;

/// A service, which has one process after the other.
#[derive(Debug)]
pub(crate) struct Supervised {
    pub(crate) name: String,
    /// The programs that its processes are of, in turn.
    binaries: Vec<PathBuf>,
    settings: Settings,
    starts: AtomicUsize,
    /// 0 while it does not serve.
    port: AtomicU16,
    process: Mutex<Option<Process>>,
    /// How often a process of its ended by itself.
    crashes: AtomicUsize,
}

/// It is killed with this value.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Supervised {
    pub(crate) fn new(binaries: Vec<PathBuf>, settings: Settings) -> Self {
        let name = settings.name.clone();
        let (starts, crashes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (port, process) = (AtomicU16::new(0), Mutex::new(None));
        Self { name, binaries, settings, starts, port, process, crashes }
    }

    /// The port on which it serves, if it does.
    pub(crate) fn port(&self) -> Option<u16> {
        Some(self.port.load(Relaxed)).filter(|port| *port != 0)
    }

    /// Starts its process with a clock that is so many seconds off, and waits until it serves.
    pub(crate) async fn start(&self, clock: i64) -> io::Result<()> {
        let settings = Settings { clock, ..self.settings.clone() };
        let start = self.starts.fetch_add(1, Relaxed);
        let mut command = Command::new(&self.binaries[start % self.binaries.len()]);
        let said = File::options().create(true).append(true).open(settings.log.with_file_name(&self.name))?;
        command.args(settings.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(said);
        if clock != 0 {
            command.env("LD_PRELOAD", faketime()?).env("FAKETIME", format!("{clock:+}s"));
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        *self.process.lock().await = Some(Process(child));
        let (told, port) = oneshot::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = told.send(line.trim().parse::<u16>());
        });
        let port = port.await.map_err(io::Error::other)?;
        let port = port.map_err(|_| io::Error::other(format!("the service {} does not come up", self.name)))?;
        self.port.store(port, Relaxed);
        Ok(())
    }

    /// Ends its process at once, as by `kill -9`.
    pub(crate) async fn kill(&self) {
        self.port.store(0, Relaxed);
        if let Some(mut process) = self.process.lock().await.take()
            && !matches!(process.0.try_wait(), Ok(None))
        {
            self.crashes.fetch_add(1, Relaxed);
        }
    }

    /// The number of its process.
    pub(crate) async fn id(&self) -> Option<u32> {
        self.process.lock().await.as_ref().map(|process| process.0.id())
    }

    /// How often a process of its has ended without being killed. What it said is in the file of its name.
    pub(crate) fn crashes(&self) -> usize {
        self.crashes.load(Relaxed)
    }

    pub(crate) async fn signal(&self, signal: Signal) {
        if let Some(Process(child)) = &*self.process.lock().await {
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }
}

fn faketime() -> io::Result<PathBuf> {
    let places = ["x86_64", "aarch64"]
        .map(|machine| Path::new("/usr/lib").join(format!("{machine}-linux-gnu/faketime/libfaketime.so.1")));
    let found = places.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| io::Error::other("`libfaketime` is needed; scripts/test installs it"))
}
