use std::{
    env,
    fs::{self, File},
    io,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::Kind;

/// Neither database runs as root.
const NOBODY: u32 = 65_534;

/// Creates what a server needs in its folder.
pub(super) fn create(kind: Kind, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    if is_root()? {
        chown(folder, Some(NOBODY), Some(NOBODY))?;
    }
    let data = folder.join("data").display().to_string();
    let mut create = match kind {
        Kind::Redis | Kind::Sentinel | Kind::Cluster | Kind::Memory => return Ok(()),
        Kind::Postgres => command(
            "initdb",
            folder,
            &["-D", &data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        )?,
        Kind::MariaDb => {
            let (data, scratch) = mariadb_folders(folder);
            let install = ["--no-defaults", &data, &scratch, "--auth-root-authentication-method=normal"];
            command("mariadb-install-db", folder, &install)?
        }
    };
    let status = create.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{create:?}: {status}"))) }
}

/// The command that serves. What a server has confirmed reaches the operating system, which outlives it.
pub(super) fn serve(kind: Kind, folder: &Path, port: u16) -> io::Result<Command> {
    let (data, number) = (folder.join("data").display().to_string(), port.to_string());
    match kind {
        // Nobody asks it.
        Kind::Memory => command("sleep", folder, &["infinity"]),
        Kind::Redis | Kind::Sentinel | Kind::Cluster => {
            let kept = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
            let place = ["--bind", "127.0.0.1", "--port", &number, "--loglevel", "warning"];
            command("redis-server", folder, &[&place[..], &kept].concat())
        }
        Kind::Postgres => {
            let place = folder.display().to_string();
            let settings = ["listen_addresses=127.0.0.1", "fsync=off", "max_connections=120"];
            let settings = settings.iter().flat_map(|setting| ["-c", setting]);
            let place = ["-D", &data, "-p", &number, "-k", &place];
            command("postgres", folder, &place.into_iter().chain(settings).collect::<Vec<_>>())
        }
        Kind::MariaDb => {
            let (data, scratch) = mariadb_folders(folder);
            let [socket, pid] = ["socket", "pid-file"].map(|name| format!("--{name}={}", folder.join(name).display()));
            let port = format!("--port={number}");
            let place = ["--no-defaults", &data, &scratch, "--bind-address=127.0.0.1", &port, &socket, &pid];
            let settings = ["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M"];
            command("mariadbd", folder, &[&place[..], &settings].concat())
        }
    }
}

fn mariadb_folders(folder: &Path) -> (String, String) {
    let data = format!("--datadir={}", folder.join("data").display());
    // A server that starts removes the temporary tables of all others in its temporary folder.
    (data, format!("--tmpdir={}", folder.display()))
}

/// A command that does not run as root, and whose output is in a file of its folder.
fn command(name: &str, folder: &Path, arguments: &[&str]) -> io::Result<Command> {
    let log = File::options().create(true).append(true).open(folder.join("log"))?;
    let mut command = Command::new(find(name)?);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    if is_root()? {
        command.uid(NOBODY).gid(NOBODY);
    }
    Ok(command)
}

/// Looks where Debian has what is not on the path of everybody.
fn find(name: &str) -> io::Result<PathBuf> {
    let mut folders: Vec<_> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    folders.extend(["/usr/sbin", "/usr/bin"].map(PathBuf::from));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| io::Error::other(format!("`{name}` is needed; scripts/test installs it")))
}

fn is_root() -> io::Result<bool> {
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}
