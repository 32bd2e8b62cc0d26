//! The verbs that change something, and that somebody has to agree to.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};

use crate::show::time;

use super::Subject;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("outcome").required(true))]
pub(crate) struct Settle {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// A tombstone: it ran, and there is no answer to repeat.
    #[arg(long, group = "outcome")]
    pub(crate) tombstone: bool,
    /// A message that was handled.
    #[arg(long, group = "outcome")]
    pub(crate) done: bool,
    /// It ran and failed, and must not run again.
    #[arg(long, group = "outcome")]
    pub(crate) failed: bool,
    /// The value of a function, in JSON.
    #[arg(long, value_name = "JSON", group = "outcome")]
    pub(crate) value: Option<String>,
    /// An HTTP answer with this status.
    #[arg(long, value_name = "STATUS", group = "outcome", value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) response: Option<u16>,
    /// A header of the HTTP answer, such as `content-type: application/json`; once for each.
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "response")]
    pub(crate) headers: Vec<String>,
    /// A file with the body of the HTTP answer.
    #[arg(long, value_name = "FILE", requires = "response")]
    pub(crate) body_file: Option<PathBuf>,
    /// How long the record answers duplicates.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = time::parse)]
    pub(crate) keep: Duration,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
}

#[derive(Debug, Args)]
pub(crate) struct Release {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// The work never began: the attempt does not count.
    #[arg(long)]
    pub(crate) undo: bool,
    /// How long the attempts are remembered.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = time::parse)]
    pub(crate) keep: Duration,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
}

#[derive(Debug, Args)]
pub(crate) struct Forget {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Remove a running record too: the next request runs at the same time.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
}

#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Only the records of the namespace that `--namespace` names, or of those outside of all namespaces.
    #[arg(long)]
    pub(crate) only_namespace: bool,
    /// Remove at most so many records.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Create the outbox too.
    #[arg(long)]
    pub(crate) outbox: bool,
    /// Show what would be created, and create nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
}

#[derive(Debug, Args)]
pub(crate) struct Agreement {
    /// Go on without a question.
    #[arg(long, short)]
    pub(crate) yes: bool,
}
