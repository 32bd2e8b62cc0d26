//! The place of the records: URL, namespace, table.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use crate::show::time;

/// The place of the records.
#[derive(Debug, Args)]
#[command(next_help_heading = "The store")]
pub(crate) struct Place {
    /// The URL of the store, if it has no password in it.
    #[arg(long, global = true, value_name = "URL", conflicts_with = "url_file")]
    pub(crate) url: Option<String>,
    /// A file with the URL of the store in it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) url_file: Option<PathBuf>,
    /// The namespace of the records; once more for a namespace within it.
    #[arg(long = "namespace", global = true, value_name = "NAME")]
    pub(crate) namespaces: Vec<String>,
    /// The table of the records [default: `idempotency_records`].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// The server is one of a Redis Cluster.
    #[arg(long, global = true)]
    pub(crate) cluster: bool,
    /// The certificate authorities of a `rediss://` server, in PEM, instead of those of the system.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// How long it may take to connect, and Redis to answer.
    #[arg(long, global = true, value_name = "DURATION", default_value = "5s", value_parser = time::parse)]
    timeout: Duration,
}

impl Place {
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}
