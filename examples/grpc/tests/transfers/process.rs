//! A server in a process of its own.

use std::{
    io::{BufRead, BufReader},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use tokio::time::sleep;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_grpc-transfers");

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a server runs.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) lease: Duration,
    pub(crate) work: Duration,
    pub(crate) at_most_once: bool,
}

/// It ends when this is dropped, as by `kill -9`.
pub(crate) struct Process {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts a server, and waits until it serves.
    pub(crate) async fn start(port: u16, store: &str, ledger: &Path, options: Options) -> Self {
        let milliseconds = |time: Duration| time.as_millis().to_string();
        let mut child = Command::new(PROGRAM)
            .args(["serve", &format!("127.0.0.1:{port}"), store])
            .arg(ledger)
            .args([milliseconds(options.lease), milliseconds(options.work)])
            .args(options.at_most_once.then_some("at-most-once"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let (lines, heard) = (BufReader::new(child.stdout.take().unwrap()).lines(), said.clone());
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push(line)));
        let mut process = Self { child, said };
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(process.child.try_wait().unwrap().is_none() && began.elapsed() < PATIENCE, "it does not serve");
            sleep(Duration::from_millis(10)).await;
        }
        process
    }

    /// Returns whether the server has said this of a key.
    pub(crate) fn has_said(&self, key: &str, what: &str) -> bool {
        self.said.lock().unwrap().iter().any(|line| line.starts_with(key) && line.contains(what))
    }

    /// Waits until the server has said this of a key.
    pub(crate) async fn says(&self, key: &str, what: &str) {
        let began = Instant::now();
        while !self.has_said(key, what) {
            assert!(began.elapsed() < PATIENCE, "{key}: it did not say `{what}`");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// How often the service was called, as it says; what it said at last may be on its way.
    pub(crate) async fn runs(&self) -> usize {
        let runs = || self.said.lock().unwrap().iter().filter(|line| line.ends_with("begins")).count();
        let mut seen = runs();
        loop {
            sleep(Duration::from_millis(200)).await;
            match runs() {
                same if same == seen => return same,
                more => seen = more,
            }
        }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
