//! What can be asked, as `clap` reads it.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Parser, Subcommand};

use crate::show::time;

/// What stands below `--help`.
const MORE: &str = "\
The URL of the store comes from the environment variable TOWER_IDEMPOTENCY_URL, or from a file (--url-file).
  redis://user:password@host:6379/0     rediss://…     redis://host:1,host:2 (a cluster)
  redis-sentinel://host:26379/master    unix:///path
  postgres://user:password@host/shop    mysql://user:password@host/shop    sqlite:/path/records.db

Exit codes:
  0    done
  1    the store cannot be reached, or returned an error
  2    wrong arguments, URL or file
  3    there is no such record or message
  4    refused: the state does not permit it, or nobody agreed (--yes)
  5    `doctor`: something should be set right
  6    `doctor`: something loses records, or keeps the store from working
  130  ended by Ctrl-C; what was done before stays done";

/// Look at the records of a store, end abandoned ones, clean up, migrate, check.
#[derive(Debug, Parser)]
#[command(name = "tower-idempotency", version, after_help = MORE, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Print JSON, in the shape that the README documents.
    #[arg(long, global = true, help_heading = "Options")]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Where the records are.
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

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show one record.
    Inspect(Subject),
    /// List records, a page at a time.
    List(List),
    /// Count the records by state.
    Stats,
    /// Settle an abandoned record: its duplicates are answered from now on.
    Settle(Settle),
    /// Release an abandoned record: the next try runs.
    Release(Release),
    /// Remove a record, so that its key is free.
    Forget(Forget),
    /// Remove expired records, of all namespaces of the table.
    Purge(Purge),
    /// Create what the tables lack, while others use them.
    Migrate(Migrate),
    /// Look at the messages of an outbox that are not sent.
    Outbox(Outbox),
}

/// Which record is meant.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub(crate) struct Subject {
    /// The key as the client sent it. Without --route, all records are searched for it.
    #[arg(value_name = "KEY", group = "which")]
    pub(crate) key: Option<String>,
    /// The route: the matched route, the path, or the name that the application gave.
    #[arg(long, requires = "key")]
    pub(crate) route: Option<String>,
    /// The scope, if the layer has one.
    #[arg(long, requires = "key")]
    pub(crate) scope: Option<String>,
    /// The hashed key from a log, 16 hexadecimal digits. All records are searched for it.
    #[arg(long, value_name = "DIGITS", group = "which")]
    pub(crate) log_id: Option<String>,
    /// The `id` from a list in JSON.
    #[arg(long, value_name = "DIGITS", group = "which")]
    pub(crate) id: Option<String>,
    /// A file with the application's secret, if its logs are hashed with one.
    #[arg(long, value_name = "FILE", requires = "log_id")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("state"))]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line, and they exclude one another")]
pub(crate) struct List {
    /// Running records whose lease has lapsed.
    #[arg(long, group = "state")]
    pub(crate) abandoned: bool,
    /// Running records whose lease is alive.
    #[arg(long, group = "state")]
    pub(crate) running: bool,
    /// Records with an answer, or with a tombstone.
    #[arg(long, group = "state")]
    pub(crate) settled: bool,
    /// Records whose next try runs.
    #[arg(long, group = "state")]
    pub(crate) released: bool,
    /// Tokens that nobody has claimed.
    #[arg(long, group = "state")]
    pub(crate) issued: bool,
    /// Only records of this route.
    #[arg(long)]
    pub(crate) route: Option<String>,
    /// Only records of this scope.
    #[arg(long)]
    pub(crate) scope: Option<String>,
    /// Only records that lapsed at least so long ago.
    #[arg(long, value_name = "DURATION", value_parser = time::parse, requires = "abandoned")]
    pub(crate) lapsed_for: Option<Duration>,
    /// How many records a page has, about.
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
    /// Where the page begins: the `next` of the page before.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

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
pub(crate) struct Outbox {
    /// The table of the outbox [default: `idempotency_outbox`].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) outbox_table: Option<String>,
    #[command(subcommand)]
    pub(crate) verb: OutboxVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OutboxVerb {
    /// List the messages that are not sent, the first staged first.
    List(OutboxList),
    /// Make a message that has failed due now.
    Retry(OutboxMessage),
    /// Remove a message that can never be sent.
    Discard(OutboxMessage),
}

#[derive(Debug, Args)]
pub(crate) struct OutboxList {
    /// Only messages that were staged at least so long ago.
    #[arg(long, value_name = "DURATION", value_parser = time::parse)]
    pub(crate) older_than: Option<Duration>,
    /// How many messages a page has.
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
    /// Where the page begins: the `next` of the page before.
    #[arg(long, value_name = "POSITION")]
    pub(crate) after: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct OutboxMessage {
    /// The id of the message.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
}

#[derive(Debug, Args)]
pub(crate) struct Agreement {
    /// Go on without a question.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_agree_with_one_another() {
        Arguments::command().debug_assert();
    }
}
