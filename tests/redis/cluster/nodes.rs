use std::{
    net::{Ipv4Addr, TcpListener},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use tower_idempotency::{RedisStore, store::RecordKey};

use crate::server::Server;

const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10_922), (10_923, 16_383)];

/// The first three have the slots, the others are their replicas, in the same order, until a replica takes over.
pub(crate) struct Nodes(Vec<Server>);

impl Nodes {
    pub(crate) fn start() -> Self {
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
        // They learn it last, by gossip, and `CLUSTER SLOTS` names them then.
        nodes.wait("all name all replicas", |server| server.tell("CLUSTER SLOTS").matches("127.0.0.1").count() >= 6);
        nodes
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.0.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis-cluster://{}", hosts.join(","))
    }

    pub(crate) async fn store(&self) -> RedisStore {
        RedisStore::connect(&self.url()).await.unwrap()
    }

    pub(crate) fn tell_all(&self, command: &str) {
        assert!(self.0.iter().all(|server| server.tell(command).starts_with("+OK")));
    }

    pub(crate) fn masters(&self) -> &[Server] {
        &self.0[..3]
    }

    /// Which had a slot at the start.
    pub(crate) fn owner(&self, slot: u16) -> &Server {
        &self.0[share_of(slot)]
    }

    pub(crate) fn owned_by_first(&self, slot: u16) -> bool {
        self.owner(slot).port() == self.0[0].port()
    }

    pub(crate) fn kill_first(&mut self) {
        self.0[0].kill();
    }

    /// All but the first.
    pub(crate) fn kill_others(&mut self) {
        self.0[1..].iter_mut().for_each(Server::kill);
    }

    /// Lets the former master of a share go on, which stood still.
    pub(crate) fn resume_replaced(&self, share: usize) {
        self.0[share + 3].resume();
    }

    pub(crate) fn all(&self) -> &[Server] {
        &self.0
    }

    pub(crate) async fn replicated(&self) {
        for (master, replica) in self.0[..3].iter().zip(&self.0[3..]) {
            self.wait_for("replicas have all", || master.tell("DBSIZE") == replica.tell("DBSIZE"));
        }
        // The last command may have changed a record and not their number.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    /// Begins to move a slot; says from where to where.
    pub(crate) fn open_move(&self, slot: u16) -> (&Server, &Server) {
        let from = self.owner(slot);
        let to = self.masters().iter().find(|server| server.port() != from.port()).unwrap();
        assert!(to.tell(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from))).starts_with("+OK"));
        assert!(from.tell(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to))).starts_with("+OK"));
        (from, to)
    }

    pub(crate) async fn finish_move(&self, slot: u16, from: &Server, to: &Server) {
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

    pub(crate) fn folder(&self) -> &Path {
        self.0[0].folder()
    }

    /// No replica takes over because its master seems to be away, as it may on a machine that is busy.
    pub(crate) fn forbid_failover(&self) {
        self.tell_all("CONFIG SET cluster-replica-no-failover yes");
    }

    /// Lets `kill` kill the master of a share, and then allows its replica to take over. From now on that is the first of
    /// the two.
    pub(crate) fn kill_master<T>(&mut self, share: usize, kill: impl FnOnce(&mut Server, &Server) -> T) -> T {
        let (masters, replicas) = self.0.split_at_mut(3);
        let killed = kill(&mut masters[share], &replicas[share]);
        replicas[share].tell("CONFIG SET cluster-replica-no-failover no");
        std::mem::swap(&mut masters[share], &mut replicas[share]);
        killed
    }

    /// Waits until the first of a share is its master, and all that are alive know it.
    pub(crate) fn wait_for_promotion(&self, share: usize) {
        let (first, last) = SLOTS[share];
        let owner = format!("*3\r\n:{first}\r\n:{last}\r\n*4\r\n$9\r\n127.0.0.1\r\n:{}\r\n", self.0[share].port());
        let alive = || self.0.iter().enumerate().filter(|(n, _)| *n != share + 3).map(|(_, server)| server);
        self.wait_for("a replica takes over", || alive().all(|server| server.tell("CLUSTER SLOTS").contains(&owner)));
    }

    /// Starts the second of a share, which was killed, and waits until it follows the first.
    pub(crate) fn return_as_replica(&mut self, share: usize) {
        self.0[share + 3].start_again();
        let follows = |server: &Server| server.tell("INFO replication").contains("master_link_status:up");
        self.wait_for("a master returns as a replica", || follows(&self.0[share + 3]));
        self.wait("the cluster serves", |server| server.tell("CLUSTER INFO").contains("cluster_state:ok"));
        self.forbid_failover();
    }

    pub(crate) fn wait(&self, what: &str, holds: impl Fn(&Server) -> bool) {
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
    // By default no slot is served while one of them has no master.
    Server::start(&[&flags[..], &["--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"]].concat())
}

fn id(server: &Server) -> String {
    field(&server.tell("CLUSTER MYID"), 0)
}

/// The string at a place among those of an answer.
fn field(answer: &str, place: usize) -> String {
    answer.lines().filter(|line| !line.starts_with(['*', '$'])).nth(place).unwrap().to_owned()
}

/// The slot of a record, by the specification of Redis Cluster.
pub(crate) fn slot(key: &RecordKey) -> u16 {
    slot_of(&[b"idem{}:", key.as_bytes()].concat())
}

/// The slot of a name without braces, or with nothing in them.
pub(crate) fn slot_of(name: &[u8]) -> u16 {
    let crc = name.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    });
    crc % 16_384
}

/// Which of the three shares a slot is in.
pub(crate) fn share_of(slot: u16) -> usize {
    SLOTS.iter().position(|(_, last)| slot <= *last).unwrap()
}
