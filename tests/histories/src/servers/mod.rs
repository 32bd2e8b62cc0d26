//! The servers of a store, each in a folder of its own, from the packages of Debian. A server keeps what it has
//! confirmed when it is killed.
//!
//! - `place`: one server, or several of Redis
//! - `server`: one server: start, kill, stop
//! - `commands`: how each kind is created and started

mod commands;
mod place;
mod server;

use std::str::FromStr;

pub(crate) use self::{place::Place, server::Server};

/// What the records are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    /// A master and two replicas of Redis, watched by three sentinels.
    Sentinel,
    /// Three masters of Redis, each with a replica.
    Cluster,
    Postgres,
    MariaDb,
    /// A store in the memory of each service: not one store, which the checker has to find out.
    Memory,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Redis, Self::Sentinel, Self::Cluster, Self::Postgres, Self::MariaDb, Self::Memory];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Sentinel => "redis-sentinel",
            Self::Cluster => "redis-cluster",
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
            Self::Memory => "memory",
        }
    }

    /// Whether there are transactions that hold effects too.
    pub(crate) fn is_database(self) -> bool {
        matches!(self, Self::Postgres | Self::MariaDb)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("{name} is no store: {names}"))
    }
}
