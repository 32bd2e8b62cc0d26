use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::server::{Server, tell};

/// The first server is the master, until a replica takes over.
pub(crate) struct Group {
    pub(crate) servers: Vec<Server>,
    sentinels: Vec<(Child, u16)>,
}

impl Group {
    pub(crate) async fn start() -> Self {
        let master = Server::start(&[]);
        let port = master.port().to_string();
        let replica =
            || Server::start(&["--replicaof", &format!("127.0.0.1 {port}"), "--repl-diskless-sync-delay", "0"]);
        let servers = vec![replica(), replica(), master].into_iter().rev().collect::<Vec<_>>();
        let mut group = Self { servers, sentinels: Vec::new() };
        for n in 0..3 {
            let sentinel = group.sentinel(n);
            group.sentinels.push(sentinel);
        }
        group
            .wait("all are known", |group| {
                group.sentinels.iter().all(|(_, port)| {
                    let master = tell(*port, "SENTINEL MASTER shop").unwrap_or_default().replace("\r\n", " ");
                    master.contains("num-slaves $1 2") && master.contains("num-other-sentinels $1 2")
                })
            })
            .await;
        group
    }

    fn sentinel(&self, n: usize) -> (Child, u16) {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let file = self.servers[n].folder().join("sentinel.conf");
        let rules = format!(
            "port {port}\nbind 127.0.0.1\nloglevel warning\nsentinel monitor shop 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds shop 1000\nsentinel failover-timeout shop 5000\n",
            self.servers[0].port()
        );
        fs::write(&file, rules).unwrap();
        let child = Command::new("redis-server").arg(&file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
        (child, port)
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}/shop", hosts.join(","))
    }

    /// How long a master is away before the sentinels look for another.
    pub(crate) fn be_patient(&self, time: Duration) {
        let patience = format!("SENTINEL SET shop down-after-milliseconds {}", time.as_millis());
        assert!(self.sentinels.iter().all(|(_, port)| tell(*port, &patience).unwrap().starts_with("+OK")));
    }

    /// Waits until all sentinels name another master than the first server, and makes it the first.
    pub(crate) async fn wait_for_promotion(&mut self) {
        let named =
            |server: &Server| format!("127.0.0.1\r\n${}\r\n{}\r\n", server.port().to_string().len(), server.port());
        let ask = |port| tell(port, "SENTINEL GET-MASTER-ADDR-BY-NAME shop").unwrap_or_default();
        let agreed = |group: &Self, n: usize| {
            let named = named(&group.servers[n]);
            group.sentinels.iter().all(|(_, port)| ask(*port).contains(&named))
        };
        self.wait("a replica takes over", |group| agreed(group, 1) || agreed(group, 2)).await;
        let promoted = if agreed(self, 1) { 1 } else { 2 };
        self.servers.swap(0, promoted);
    }

    /// Starts a server again that was killed, and waits until all follow the first.
    pub(crate) async fn return_as_replica(&mut self, n: usize) {
        let port = self.servers[0].port().to_string();
        self.servers[n].start_slowly(&["--replicaof", &format!("127.0.0.1 {port}")]);
        self.wait("all follow the new master", |group| {
            let follows = |server: &Server| tell(server.port(), "INFO replication").unwrap_or_default();
            let named = format!("master_port:{port}\r\n");
            group.servers[1..].iter().all(|server| {
                let info = follows(server);
                info.contains(&named) && info.contains("master_link_status:up")
            })
        })
        .await;
    }

    pub(crate) async fn wait(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}, and does not");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for (child, _) in &mut self.sentinels {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
