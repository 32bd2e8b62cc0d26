//! A `redis-server` of the test's own.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use tower_idempotency::RedisStore;

/// It is ended by its own number and its folder removed when this is dropped, after a failed test too.
pub(crate) struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
    flags: Vec<String>,
}

impl Server {
    pub(crate) fn start(flags: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tower-idempotency-redis-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = env::temp_dir().join(name);
        let flags: Vec<_> = flags.iter().map(ToString::to_string).collect();
        // The port is free when it is looked for, and may be taken a moment later.
        for _ in 0..20 {
            fs::create_dir_all(&folder).unwrap();
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let mut server =
                Self { child: spawn(port, &folder, &flags), port, folder: folder.clone(), flags: flags.clone() };
            if server.comes_up() {
                return server;
            }
        }
        panic!("no redis-server comes up in {}", folder.display());
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn store(&self) -> RedisStore {
        RedisStore::connect(&self.url()).await.unwrap()
    }

    /// Sends a command on a connection of its own; gives what came back.
    pub(crate) fn tell(&self, command: &str) -> String {
        tell(self.port, command).unwrap()
    }

    /// Whether it has `SET … IFEQ`.
    pub(crate) fn compares(&self) -> bool {
        !self.tell("SET none 1 IFEQ 0").starts_with('-')
    }

    /// Returns whether so many replicas confirm that they have all that the server received before.
    pub(crate) fn is_confirmed_by(&self, replicas: usize, name: &str) -> bool {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(format!("SET {name} 1 PX 1\r\nWAIT {replicas} 20000\r\n").as_bytes()).unwrap();
        let answers: Vec<_> = BufReader::new(stream).lines().take(2).map_while(Result::ok).collect();
        answers == ["+OK".to_owned(), format!(":{replicas}")]
    }

    /// The answer of `CLIENT KILL`: all connections but the asking one are cut.
    pub(crate) fn cut(&self) {
        self.tell("CLIENT KILL TYPE normal SKIPME yes");
        self.tell("CLIENT KILL TYPE pubsub SKIPME yes");
    }

    /// Stands still until [`resume`](Self::resume).
    pub(crate) fn pause(&self) {
        self.signal("STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("CONT");
    }

    /// Ends at once, as by `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Begins again in the same place, with what it has saved.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.port, &self.folder, &self.flags);
        assert!(self.comes_up(), "redis-server does not come up again");
    }

    /// The same with further flags, and without waiting until it serves.
    pub(crate) fn start_slowly(&mut self, flags: &[&str]) {
        let flags = [&*self.flags, &flags.iter().map(ToString::to_string).collect::<Vec<_>>()].concat();
        self.child = spawn(self.port, &self.folder, &flags);
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    fn comes_up(&mut self) -> bool {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if tell(self.port, "PING").is_ok_and(|answer| !answer.is_empty() && !answer.starts_with("-LOADING")) {
                // Another's server may have taken the port first; then one's own has ended.
                return matches!(self.child.try_wait(), Ok(None));
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spawn(port: u16, folder: &PathBuf, flags: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
        .args(["--loglevel", "warning", "--dir"])
        .arg(folder)
        .args(flags)
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("redis-server is needed for these tests (Debian: redis-server): {error}"))
}

pub(crate) fn tell(port: u16, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}
