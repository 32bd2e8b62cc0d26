//! The servers of a store, each in a folder of its own, from the packages of Debian. A server keeps what it has
//! confirmed when it is killed.
//!
//! - `server`: one server: start, kill, stop
//! - `commands`: how each kind is created and started

mod commands;
mod server;

use std::str::FromStr;

pub(crate) use self::server::Server;

/// What the records are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    Postgres,
    MariaDb,
    /// A store in the memory of each service: not one store, which the checker has to find out.
    Memory,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Redis, Self::Postgres, Self::MariaDb, Self::Memory];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
            Self::Memory => "memory",
        }
    }

    /// Whether there are transactions that hold effects too.
    pub(crate) fn is_database(self) -> bool {
        matches!(self, Self::Postgres | Self::MariaDb)
    }

    pub(crate) fn url(self, port: u16) -> String {
        match self {
            Self::Redis => format!("redis://127.0.0.1:{port}"),
            Self::Postgres => format!("postgres://tests@127.0.0.1:{port}/postgres"),
            Self::MariaDb => format!("mysql://root@127.0.0.1:{port}/test"),
            Self::Memory => "memory".into(),
        }
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
