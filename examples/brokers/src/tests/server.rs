//! Brokers of the tests' own, from the packages of Debian.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use super::folder::Folder;

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// RabbitMQ does not run as root.
const NOBODY: u32 = 65_534;

/// A broker that ends with this value, with all that it has started, also where the test fails.
pub(crate) struct Server {
    groups: Vec<Child>,
    port: u16,
    folder: Folder,
}

impl Server {
    pub(crate) fn nats() -> Self {
        let mut server = Self::new();
        // Debian has it where not everybody's path leads.
        let debians = "/usr/sbin/nats-server";
        let mut serve = Command::new(if Path::new(debians).is_file() { debians } else { "nats-server" });
        serve.args(["--addr", "127.0.0.1", "--port", &server.port.to_string(), "--jetstream", "--store_dir"]);
        serve.arg(server.folder.path());
        server.start(serve, server.port);
        server
    }

    pub(crate) fn rabbitmq() -> Self {
        let mut server = Self::new();
        let folder = server.folder.path().to_owned();
        if is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // Erlang would start this by itself, and leave it behind.
        let names = free_port();
        let mut epmd = Command::new("epmd");
        epmd.args(["-address", "127.0.0.1", "-port", &names.to_string()]);
        server.start(epmd, names);

        // The script of Debian's package wants root or its own user.
        let mut serve = Command::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
        serve
            .current_dir(&folder)
            .env("HOME", &folder)
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", names.to_string())
            .env("RABBITMQ_NODENAME", format!("tests{}@localhost", server.port))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", server.port.to_string())
            .env("RABBITMQ_DIST_PORT", free_port().to_string())
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_LOGS", "-")
            .env("RABBITMQ_PID_FILE", folder.join("pid"))
            .env("RABBITMQ_CONF_ENV_FILE", folder.join("none"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("none"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"));
        server.start(serve, server.port);
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn new() -> Self {
        Self { groups: Vec::new(), port: free_port(), folder: Folder::quick() }
    }

    /// Starts it in a group of its own, and waits until it listens.
    fn start(&mut self, mut command: Command, port: u16) {
        let log = self.folder.path().join(format!("log-{port}"));
        let output = File::create(&log).unwrap();
        if is_root() {
            chown(&log, Some(NOBODY), Some(NOBODY)).unwrap();
            chown(self.folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        }
        command.process_group(0).stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let started = command.spawn().unwrap_or_else(|error| {
            panic!("{command:?}: {error}; Debian's `rabbitmq-server` and `nats-server` are needed, scripts/test installs them")
        });
        self.groups.push(started);
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = self.groups.last_mut().unwrap().try_wait().unwrap();
            let hopeful = ended.is_none() && began.elapsed() < PATIENCE;
            assert!(hopeful, "{command:?} does not serve:\n{}", fs::read_to_string(&log).unwrap_or_default());
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for leader in self.groups.iter_mut().rev() {
            let group = format!("-{}", leader.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = leader.wait();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}
