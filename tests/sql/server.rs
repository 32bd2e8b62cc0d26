//! Servers of the tests' own, from the packages of Debian.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::folder::Folder;

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Neither server runs as root.
const NOBODY: u32 = 65_534;

/// A server that ends with this value, also if the test fails.
pub(crate) struct Server {
    child: Child,
    port: u16,
    _folder: Folder,
}

impl Server {
    #[cfg(feature = "postgres")]
    pub(crate) fn postgres() -> Self {
        let folder = Folder::new();
        own(folder.path());
        let data = folder.path().join("data");
        let mut create = command("initdb");
        create.arg("-D").arg(&data).args(["-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        run(&mut create);
        Self::start(folder, |port, folder| {
            let mut serve = command("postgres");
            serve.arg("-D").arg(&data).args(["-p", &port.to_string()]).arg("-k").arg(folder);
            for setting in ["listen_addresses=127.0.0.1", "fsync=off", "autovacuum=off", "max_connections=80"] {
                serve.args(["-c", setting]);
            }
            serve
        })
    }

    #[cfg(feature = "mysql")]
    pub(crate) fn mariadb() -> Self {
        let folder = Folder::new();
        own(folder.path());
        let data = format!("--datadir={}", folder.path().join("data").display());
        // A server that starts removes the temporary tables of all others in its temporary folder.
        let scratch = format!("--tmpdir={}", folder.path().display());
        let mut create = command("mariadb-install-db");
        create.args(["--no-defaults", &data, &scratch, "--auth-root-authentication-method=normal", "--skip-test-db"]);
        run(&mut create);
        Self::start(folder, |port, folder| {
            let mut serve = command("mariadbd");
            serve.args(["--no-defaults", &data, &scratch, "--bind-address=127.0.0.1", &format!("--port={port}")]);
            for file in ["socket", "pid-file"] {
                serve.arg(format!("--{file}={}", folder.join(file).display()));
            }
            serve.args(["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=32M"]);
            serve
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn start(folder: Folder, serve: impl FnOnce(u16, &Path) -> Command) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let log = folder.path().join("log");
        let output = File::create(&log).unwrap();
        let mut serve = serve(port, folder.path());
        let child = serve.stdout(output.try_clone().unwrap()).stderr(output).spawn();
        let child = child.unwrap_or_else(|error| panic!("{serve:?}: {error}"));
        let mut server = Self { child, port, _folder: folder };
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = server.child.try_wait().unwrap();
            let hopeful = ended.is_none() && began.elapsed() < PATIENCE;
            assert!(hopeful, "{serve:?} does not serve:\n{}", fs::read_to_string(&log).unwrap_or_default());
            sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs as somebody who is not root.
fn command(name: &str) -> Command {
    let mut command = Command::new(find(name));
    command.current_dir("/").stdin(Stdio::null());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Looks where Debian has what is not on the path of everybody.
fn find(name: &str) -> PathBuf {
    let mut folders: Vec<_> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    folders.extend(["/usr/sbin", "/usr/bin"].map(PathBuf::from));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("`{name}` is needed, from Debian's packages `postgresql` and `mariadb-server-core`; scripts/test installs them")
    })
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
}

fn own(folder: impl AsRef<OsStr>) {
    if is_root() {
        chown(Path::new(&folder), Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}
