use std::{io, path::Path, thread};

use tokio::task::block_in_place;

use super::{Kind, Server};
use crate::{
    group::Group,
    nodes::{Nodes, share_of, slot_of},
    server::{self, tell},
    time::{millis, now, pause},
};

/// How long a master is away before sentinels look for another: for ever, save in a failover.
const FOR_EVER: u64 = 60_000;
const SHORTLY: u64 = 1_000;

/// What a store is on.
pub(crate) enum Place {
    One(Server),
    Watched(Group),
    Shared(Nodes),
}

impl Place {
    pub(crate) async fn start(kind: Kind, folder: &Path) -> io::Result<Self> {
        match kind {
            Kind::Sentinel => {}
            Kind::Cluster => {
                let nodes = block_in_place(Nodes::start);
                nodes.forbid_failover();
                return Ok(Self::Shared(nodes));
            }
            _ => return Server::start(kind, folder).await.map(Self::One),
        }
        let group = Group::start().await;
        group.be_patient(millis(FOR_EVER));
        Ok(Self::Watched(group))
    }

    /// The port that a proxy leads to, if there is one server.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::One(server) => Some(server.port),
            Self::Watched(_) | Self::Shared(_) => None,
        }
    }

    /// The URL, by which the server is reached through this port instead of its own.
    pub(crate) fn url(&self, port: u16) -> String {
        match self {
            Self::One(server) => server.url(port),
            Self::Watched(group) => group.url(),
            Self::Shared(nodes) => nodes.url(),
        }
    }

    pub(crate) fn stop(&mut self) {
        match self {
            Self::One(server) => server.stop(),
            Self::Watched(group) => group.servers[0].pause(),
            Self::Shared(nodes) => nodes.masters()[0].pause(),
        }
    }

    pub(crate) fn go_on(&mut self) {
        match self {
            Self::One(server) => server.go_on(),
            Self::Watched(group) => group.servers[0].resume(),
            Self::Shared(nodes) => nodes.masters()[0].resume(),
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
            Self::Watched(_) | Self::Shared(_) => Ok(()),
        }
    }

    /// Kills a master, after its replicas have received nothing for so many milliseconds, and waits for another one.
    /// Returns until when nothing that it had received is lost, when it was killed, and when the other was the master.
    pub(crate) async fn fail_over(&mut self, cut_off: u64) -> io::Result<[u64; 3]> {
        match self {
            Self::One(_) => Err(io::Error::other("there is nothing to fail over to")),
            Self::Watched(group) => Ok(promote(group, cut_off).await),
            Self::Shared(nodes) => Ok(block_in_place(|| promote_share(nodes, cut_off))),
        }
    }
}

async fn promote(group: &mut Group, cut_off: u64) -> [u64; 3] {
    group.wait("the sentinels are done with what was before", |group| are_at_rest(&group.url())).await;
    let replicas = group.servers.split_off(1);
    let followers: Vec<_> = replicas.iter().collect();
    let [confirmed, killed_at] = block_in_place(|| kill(&mut group.servers[0], &followers, "confirmed", cut_off));
    group.servers.extend(replicas);
    group.be_patient(millis(SHORTLY));
    let killed = group.servers[0].port();
    group.wait_for_promotion().await;
    let promoted = now();
    group.be_patient(millis(FOR_EVER));
    if let Some(killed) = group.servers.iter().position(|server| server.port() == killed) {
        group.return_as_replica(killed).await;
    }
    [confirmed, killed_at, promoted]
}

fn promote_share(nodes: &mut Nodes, cut_off: u64) -> [u64; 3] {
    let share = usize::try_from(cut_off % 3).unwrap_or_default();
    let mut names = (0..).map(|n: u32| n.to_string());
    let name = names.find(|name| share_of(slot_of(name.as_bytes())) == share).unwrap_or_default();
    let [confirmed, killed] = nodes.kill_master(share, |master, replica| kill(master, &[replica], &name, cut_off));
    nodes.wait_for_promotion(share);
    let promoted = now();
    nodes.return_as_replica(share);
    [confirmed, killed, promoted]
}

/// Kills a master. `name` is one that it may write to.
fn kill(master: &mut server::Server, replicas: &[&server::Server], name: &str, cut_off: u64) -> [u64; 2] {
    let confirmed = now();
    assert!(master.is_confirmed_by(replicas.len(), name), "the replicas do not follow");
    // They would connect again at once, so they stand still meanwhile.
    for replica in replicas {
        replica.pause();
    }
    master.tell("CLIENT KILL TYPE replica");
    thread::sleep(millis(cut_off));
    master.kill();
    let killed = now();
    for replica in replicas {
        replica.resume();
    }
    [confirmed, killed]
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
