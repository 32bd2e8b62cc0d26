use std::{
    net::{Ipv4Addr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use tower_idempotency::{RecordKey, RedisStore};

use crate::server::Server;

const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10_922), (10_923, 16_383)];

/// The first three have the slots, the others are their replicas, in the same order.
pub(super) struct Nodes(Vec<Server>);

impl Nodes {
    pub(super) fn start() -> Self {
        let nodes = Self((0..6).map(|_| node()).collect());
        for (server, (first, last)) in nodes.0.iter().zip(SLOTS) {
            assert!(server.tell(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")).starts_with("+OK"));
        }
        for (n, server) in nodes.0.iter().enumerate() {
            assert!(server.tell(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1)).starts_with("+OK"));
        }
        for server in &nodes.0[1..] {
            let bus = field(&server.tell("CONFIG GET cluster-port"), 1);
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {bus}", server.port());
            assert!(nodes.0[0].tell(&meet).starts_with("+OK"));
        }
        nodes.wait("they know one another", |server| server.tell("CLUSTER INFO").contains("cluster_known_nodes:6"));
        for (replica, master) in nodes.0[3..].iter().zip(&nodes.0) {
            let replicate = format!("CLUSTER REPLICATE {}", id(master));
            nodes.wait_for("a replica knows its master", || replica.tell(&replicate).starts_with("+OK"));
        }
        nodes.wait("the cluster serves", |server| {
            let info = server.tell("CLUSTER INFO");
            info.contains("cluster_state:ok") && server.tell("CLUSTER NODES").matches("slave ").count() == 3
        });
        nodes.wait("replicas follow", |server| {
            let info = server.tell("INFO replication");
            info.contains("role:master") || info.contains("master_link_status:up")
        });
        // They are told last, by gossip, and `CLUSTER SLOTS` names them then.
        nodes.wait("all name all replicas", |server| server.tell("CLUSTER SLOTS").matches("127.0.0.1").count() >= 6);
        nodes
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    pub(super) fn url(&self) -> String {
        let hosts: Vec<_> = self.0.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis-cluster://{}", hosts.join(","))
    }

    pub(super) async fn store(&self) -> RedisStore {
        RedisStore::connect(&self.url()).await.unwrap()
    }

    pub(super) fn tell_all(&self, command: &str) {
        assert!(self.0.iter().all(|server| server.tell(command).starts_with("+OK")));
    }

    pub(super) fn masters(&self) -> &[Server] {
        &self.0[..3]
    }

    /// Which had a slot at the start.
    pub(super) fn owner(&self, slot: u16) -> &Server {
        &self.0[SLOTS.iter().position(|(_, last)| slot <= *last).unwrap()]
    }

    pub(super) fn owned_by_first(&self, slot: u16) -> bool {
        self.owner(slot).port() == self.0[0].port()
    }

    pub(super) fn kill_first(&mut self) {
        self.0[0].kill();
    }

    pub(super) async fn replicated(&self) {
        for (master, replica) in self.0[..3].iter().zip(&self.0[3..]) {
            self.wait_for("replicas have all", || master.tell("DBSIZE") == replica.tell("DBSIZE"));
        }
        // The last command may have changed a record and not their number.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    /// Begins to move a slot; says from where to where.
    pub(super) fn open_move(&self, slot: u16) -> (&Server, &Server) {
        let from = self.owner(slot);
        let to = self.masters().iter().find(|server| server.port() != from.port()).unwrap();
        assert!(to.tell(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from))).starts_with("+OK"));
        assert!(from.tell(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to))).starts_with("+OK"));
        (from, to)
    }

    pub(super) async fn finish_move(&self, slot: u16, from: &Server, to: &Server) {
        let client = redis::Client::open(from.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut names = redis::cmd("CLUSTER");
        names.arg("GETKEYSINSLOT").arg(slot).arg(1000);
        let names: Vec<Vec<u8>> = names.query_async(&mut connection).await.unwrap();
        let mut migrate = redis::cmd("MIGRATE");
        migrate.arg("127.0.0.1").arg(to.port()).arg("").arg(0).arg(5000).arg("KEYS").arg(names);
        let () = migrate.query_async(&mut connection).await.unwrap();
        for server in [to, from] {
            assert!(server.tell(&format!("CLUSTER SETSLOT {slot} NODE {}", id(to))).starts_with("+OK"));
        }
    }

    fn wait(&self, what: &str, holds: impl Fn(&Server) -> bool) {
        self.wait_for(what, || self.0.iter().all(&holds));
    }

    fn wait_for(&self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{what}, and does not: {}",
                self.0[0].tell("CLUSTER NODES")
            );
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn node() -> Server {
    let bus = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port().to_string();
    let flags = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-port", &bus];
    Server::start(&[&flags[..], &["--repl-diskless-sync-delay", "0"]].concat())
}

fn id(server: &Server) -> String {
    field(&server.tell("CLUSTER MYID"), 0)
}

/// The string at a place among those of an answer.
fn field(answer: &str, place: usize) -> String {
    answer.lines().filter(|line| !line.starts_with(['*', '$'])).nth(place).unwrap().to_owned()
}

/// The slot of a record, by the specification of Redis Cluster.
pub(super) fn slot(key: &RecordKey) -> u16 {
    let name = [b"idem{}:", key.as_bytes()].concat();
    let crc = name.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    });
    crc % 16_384
}
