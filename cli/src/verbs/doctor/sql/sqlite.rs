//! What is known of an SQLite file.

use sqlx::SqlitePool;

use super::{
    super::finding::{Finding, Findings},
    Asked,
};

pub(super) async fn check(pool: &SqlitePool, findings: &mut Findings) {
    findings.add(match pool.ask("SELECT sqlite_version()").await {
        Ok(version) => Finding::good("version", format!("SQLite {version}")),
        Err(error) => Finding::critical("version", error, "the file is damaged, or no database: restore it"),
    });
    findings.add(match pool.ask("PRAGMA journal_mode").await.as_deref() {
        Ok("wal") => Finding::good("journal", "write-ahead log"),
        Ok(mode) => {
            let remedy = "`PRAGMA journal_mode = wal`: otherwise each writer keeps all readers waiting";
            Finding::warning("journal", mode, remedy)
        }
        Err(error) => Finding::unknown("journal", error),
    });
    let options = pool.connect_options();
    let file = options.get_filename();
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.permissions().readonly() => {
            let remedy = "give the application's user the right to write: nothing can be claimed";
            findings.add(Finding::critical("file", "read-only", remedy));
        }
        Ok(metadata) => findings.add(permissions(&metadata)),
        Err(error) => findings.add(Finding::unknown("file", error.to_string())),
    }
}

#[cfg(unix)]
fn permissions(metadata: &std::fs::Metadata) -> Finding {
    use std::os::unix::fs::PermissionsExt;

    let mode = metadata.permissions().mode() & 0o777;
    let found = format!("mode {mode:o}");
    if mode & 0o007 != 0 {
        return Finding::warning(
            "file",
            found,
            "`chmod o-rwx`: everybody on this machine can read what is kept, or write to it",
        );
    }
    Finding::good("file", found)
}

#[cfg(not(unix))]
fn permissions(_: &std::fs::Metadata) -> Finding {
    Finding::good("file", "can be written")
}
