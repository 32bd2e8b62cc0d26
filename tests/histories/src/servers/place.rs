use std::{io, path::Path};

use super::{Kind, Server};
use crate::{
    group::Group,
    server::tell,
    time::{now, pause},
};

/// How long a master is away before sentinels look for another: for ever, save in a failover.
const FOR_EVER: u64 = 60_000;
const SHORTLY: u64 = 1_000;

/// What a store is on.
pub(crate) enum Place {
    One(Server),
    Watched(Group),
}

impl Place {
    pub(crate) async fn start(kind: Kind, folder: &Path) -> io::Result<Self> {
        if kind != Kind::Sentinel {
            return Server::start(kind, folder).await.map(Self::One);
        }
        let group = Group::start().await;
        group.be_patient(crate::time::millis(FOR_EVER));
        Ok(Self::Watched(group))
    }

    /// The port that a proxy leads to, if there is one server.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::One(server) => Some(server.port),
            Self::Watched(_) => None,
        }
    }

    /// The URL, by which the server is reached through this port instead of its own.
    pub(crate) fn url(&self, port: u16) -> String {
        match self {
            Self::One(server) => server.url(port),
            Self::Watched(group) => group.url(),
        }
    }

    pub(crate) fn stop(&mut self) {
        match self {
            Self::One(server) => server.stop(),
            Self::Watched(group) => group.servers[0].pause(),
        }
    }

    pub(crate) fn go_on(&mut self) {
        match self {
            Self::One(server) => server.go_on(),
            Self::Watched(group) => group.servers[0].resume(),
        }
    }

    /// Kills the server, and starts it again with its data after so many milliseconds.
    pub(crate) async fn restart(&mut self, away: u64) -> io::Result<()> {
        if let Self::One(server) = self {
            server.kill();
            pause(away).await;
            server.start_again().await?;
        }
        Ok(())
    }

    /// Changes the table of the records; see [`Server::alter`].
    pub(crate) async fn alter(&self, number: u64) -> sqlx::Result<()> {
        match self {
            Self::One(server) => server.alter(number).await,
            Self::Watched(_) => Ok(()),
        }
    }

    /// Kills the master, after its replicas have received nothing for so many milliseconds, and waits for another one.
    /// Returns until when nothing that it had received is lost, when it was killed, and when the other was the master.
    pub(crate) async fn fail_over(&mut self, cut_off: u64) -> io::Result<[u64; 3]> {
        let Self::Watched(group) = self else { return Err(io::Error::other("there is nothing to fail over to")) };
        group.wait("the sentinels are done with what was before", |group| are_at_rest(&group.url())).await;
        let confirmed = now();
        if !group.servers[0].is_confirmed_by(2, "confirmed") {
            return Err(io::Error::other("the replicas do not follow"));
        }
        for replica in &group.servers[1..] {
            replica.pause();
        }
        // They would connect again at once, so they stand still meanwhile.
        group.servers[0].tell("CLIENT KILL TYPE replica");
        pause(cut_off).await;
        group.servers[0].kill();
        let killed_at = now();
        for replica in &group.servers[1..] {
            replica.resume();
        }
        group.be_patient(crate::time::millis(SHORTLY));
        let killed = group.servers[0].port();
        group.wait_for_promotion().await;
        let promoted = now();
        group.be_patient(crate::time::millis(FOR_EVER));
        let killed = group.servers.iter().position(|server| server.port() == killed);
        group.return_as_replica(killed.ok_or_else(|| io::Error::other("a server is missing"))?).await;
        Ok([confirmed, killed_at, promoted])
    }
}

/// Whether no sentinel of this URL is busy with a failover, and each sees all servers.
fn are_at_rest(url: &str) -> bool {
    let ports = url.split([':', ',', '/']).filter_map(|part| part.parse().ok());
    ports.into_iter().all(|port: u16| {
        let master = tell(port, "SENTINEL MASTER shop").unwrap_or_default().replace("\r\n", " ");
        let replicas = tell(port, "SENTINEL REPLICAS shop").unwrap_or_default();
        let at_rest = !master.contains("failover_in_progress") && !replicas.contains("s_down");
        at_rest && master.contains("num-slaves $1 2")
    })
}
