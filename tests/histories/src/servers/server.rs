use std::{
    fs, io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{Kind, commands};
use crate::time::{millis, now, pause};

/// Long enough for a loaded machine.
const PATIENCE: u64 = 90_000;

/// It ends with this value, and its folder is removed.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    pub(crate) port: u16,
    folder: PathBuf,
    child: Child,
    /// The processes that stand still.
    stopped: Vec<Pid>,
}

impl Server {
    pub(crate) async fn start(kind: Kind, folder: &Path) -> io::Result<Self> {
        commands::create(kind, folder)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = commands::serve(kind, folder, port)?.spawn()?;
        let mut server = Self { kind, port, folder: folder.to_owned(), child, stopped: Vec::new() };
        server.comes_up().await?;
        Ok(server)
    }

    /// The URL, by which it is reached through this port instead of its own.
    pub(crate) fn url(&self, port: u16) -> String {
        match self.kind {
            Kind::Redis | Kind::Sentinel | Kind::Cluster => format!("redis://127.0.0.1:{port}"),
            Kind::Postgres => format!("postgres://tests@127.0.0.1:{port}/postgres"),
            Kind::MariaDb => format!("mysql://root@127.0.0.1:{port}/test"),
            Kind::Memory => "memory".into(),
        }
    }

    /// Changes the table of the records as a later version might, and removes an index, which a service creates again
    /// when it starts. Waits for no lock.
    pub(crate) async fn alter(&self, number: u64) -> sqlx::Result<()> {
        let url = self.url(self.port);
        match self.kind {
            Kind::Postgres => {
                let column = format!("ADD COLUMN IF NOT EXISTS later_{number} BIGINT NOT NULL DEFAULT 0");
                let text = format!(
                    "SET lock_timeout = '100ms'; ALTER TABLE idempotency_records {column}; \
                     DROP INDEX IF EXISTS idempotency_records_due"
                );
                raw_sql(AssertSqlSafe(text)).execute(&mut PgConnection::connect(&url).await?).await?;
            }
            Kind::MariaDb => {
                let column = format!("ADD COLUMN IF NOT EXISTS later_{number} BIGINT NOT NULL DEFAULT 0");
                let text = format!(
                    "ALTER TABLE idempotency_records NOWAIT {column}, DROP INDEX IF EXISTS idempotency_records_due"
                );
                raw_sql(AssertSqlSafe(text)).execute(&mut MySqlConnection::connect(&url).await?).await?;
            }
            Kind::Redis | Kind::Sentinel | Kind::Cluster | Kind::Memory => {}
        }
        Ok(())
    }

    /// Stands still, with all of its processes.
    pub(crate) fn stop(&mut self) {
        // The first one first, so that it begins no others meanwhile.
        let first = Pid::from_child(&self.child);
        let _ = kill_process(first, Signal::STOP);
        self.stopped = vec![first];
        for child in children(first) {
            let _ = kill_process(child, Signal::STOP);
            self.stopped.push(child);
        }
    }

    pub(crate) fn go_on(&mut self) {
        for process in self.stopped.drain(..).rev() {
            let _ = kill_process(process, Signal::CONT);
        }
    }

    /// Ends at once, as by `kill -9`, with all of its processes.
    pub(crate) fn kill(&mut self) {
        self.stop();
        for process in self.stopped.drain(..).rev() {
            let _ = kill_process(process, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    /// Begins again in its place, with what it had, and waits until it serves.
    pub(crate) async fn start_again(&mut self) -> io::Result<()> {
        let began = now();
        loop {
            self.child = commands::serve(self.kind, &self.folder, self.port)?.spawn()?;
            match self.comes_up().await {
                Ok(()) => return Ok(()),
                // The memory that the old processes shared may still be there.
                Err(_) if now() < began + PATIENCE => pause(50).await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn comes_up(&mut self) -> io::Result<()> {
        let began = now();
        while !self.serves().await {
            let ended = self.child.try_wait()?;
            if ended.is_some() || now() > began + PATIENCE {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                let end: Vec<_> = log.lines().rev().take(20).collect();
                let end: Vec<_> = end.into_iter().rev().collect();
                return Err(io::Error::other(format!("{:?} does not serve:\n{}", self.kind, end.join("\n"))));
            }
            pause(20).await;
        }
        Ok(())
    }

    async fn serves(&self) -> bool {
        let url = self.url(self.port);
        let asking = async {
            match self.kind {
                Kind::Redis | Kind::Sentinel | Kind::Cluster => pings(self.port).await.unwrap_or_default(),
                Kind::Postgres => PgConnection::connect(&url).await.is_ok(),
                Kind::MariaDb => MySqlConnection::connect(&url).await.is_ok(),
                Kind::Memory => true,
            }
        };
        timeout(millis(2_000), asking).await.unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

async fn pings(port: u16) -> io::Result<bool> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(b"PING\r\n").await?;
    let mut answer = [0; 5];
    connection.read_exact(&mut answer).await?;
    Ok(answer == *b"+PONG")
}

fn children(process: Pid) -> Vec<Pid> {
    let path = format!("/proc/{0}/task/{0}/children", process.as_raw_nonzero());
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}
