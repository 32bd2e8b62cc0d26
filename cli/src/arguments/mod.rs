//! What can be asked, as `clap` reads it: `place` is where, `changes` are the verbs that change something.

mod changes;
mod place;

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Parser, Subcommand};

use crate::show::time;

pub(crate) use self::{
    changes::{Agreement, Forget, Migrate, Purge, Release, Settle},
    place::Place,
};

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
    /// Remove expired records, of all namespaces of the table or of one.
    Purge(Purge),
    /// Create what the tables lack, while others use them.
    Migrate(Migrate),
    /// Look at the messages of an outbox that are not sent.
    Outbox(Outbox),
    /// Check the server and the store, and say what to set right.
    Doctor(Doctor),
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
    /// The beginning of the page: the `next` of the page before.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Count no records: on Redis, counting visits all names of the database.
    #[arg(long)]
    pub(crate) without_counts: bool,
    /// How long abandoned records and messages may wait before they are reported.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = time::parse)]
    pub(crate) patience: Duration,
    /// The table of the outbox [default: `idempotency_outbox`].
    #[arg(long, value_name = "NAME")]
    pub(crate) outbox_table: Option<String>,
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
    /// The beginning of the page: the `next` of the page before.
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_agree_with_one_another() {
        Arguments::command().debug_assert();
    }
}
