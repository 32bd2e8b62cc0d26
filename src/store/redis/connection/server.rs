//! What a server says of itself (`INFO`), and what of it is refused or warned of.
//!
//! An old server, or one of a cluster behind a plain URL, is refused when the store connects. Settings that lose
//! records (eviction, a master without `min-replicas-to-write`) are warned of, then and when they change.
//!
//! The version also says which plain commands the verbs may use (`compared`).
//!
//! A replica is only warned of: it may be meant, for replays. A server that does not permit `INFO` is used without a
//! check.

use std::{sync::Arc, time::Duration};

use redis::Value;
use tokio::time::sleep;

use crate::{
    store::redis::{RedisShared, compared::Comparing, error::CommandError},
    value::{StoreError, StoreErrorKind, jitter},
};

use super::{transport::Transport, wire::ServerAddress};

/// The oldest version that has `SET NX GET` and `PEXPIRETIME`.
const OLDEST: (u32, u32) = (7, 0);

/// How often a server is checked for settings with which it may lose records.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// What a server reports about itself.
#[derive(Debug, PartialEq, Eq)]
struct ServerInfo {
    version: Option<(u32, u32)>,
    /// Which plain commands compare.
    comparing: Comparing,
    cluster: bool,
    replica: bool,
    /// The eviction policy.
    policy: Option<String>,
    /// It accepts no writes while too few replicas follow.
    guarded: bool,
}

/// The reasons why servers may lose records, or accept none.
#[derive(Default)]
pub(in crate::store::redis) struct Concerns {
    /// The policy that evicts.
    evicts: Option<String>,
    /// Another server may become the master while this one goes on.
    unguarded: bool,
    replica: bool,
    /// What the commands of all servers can compare.
    comparing: Option<Comparing>,
}

/// Refuses servers that the store cannot work with, and warns of those that may lose records. Returns `None` if they do
/// not report their settings.
pub(in crate::store::redis) async fn check(transport: &Transport) -> Result<Option<Concerns>, StoreError> {
    let mut concerns = Concerns::default();
    for node in transport.masters().await? {
        let Some(server) = info(transport, node.as_ref()).await? else {
            warn_of("the user of Redis may not ask `INFO`: version and eviction policy of the server are not checked");
            return Ok(None);
        };
        server.check_supported(transport.is_cluster())?;
        concerns.add(server, transport.has_sentinels());
    }
    concerns.warn(&Concerns::default());
    Ok(Some(concerns))
}

/// Warns of later changes, as long as the store exists: settings may be changed, and a restarted server may have lost
/// them.
pub(in crate::store::redis) fn monitor(shared: &Arc<RedisShared>, mut reported: Concerns) {
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        loop {
            sleep(jitter(CHECK_INTERVAL)).await;
            let Some(shared) = shared.upgrade() else { return };
            // Unavailable servers are checked the next time.
            if let Ok(Some(concerns)) = inspect(&shared.transport).await {
                shared.abilities.set(concerns.comparing());
                concerns.warn(&reported);
                reported = concerns;
            }
        }
    });
}

/// Asks all servers once more.
async fn inspect(transport: &Transport) -> Result<Option<Concerns>, CommandError> {
    let mut concerns = Concerns::default();
    for node in transport.masters().await? {
        let Some(server) = info(transport, node.as_ref()).await? else { return Ok(None) };
        concerns.add(server, transport.has_sentinels());
    }
    Ok(Some(concerns))
}

/// Asks one server; `None` if the user may not.
async fn info(transport: &Transport, node: Option<&ServerAddress>) -> Result<Option<ServerInfo>, CommandError> {
    match transport.command_at(node, &redis::cmd("INFO")).await {
        Ok(Value::BulkString(text)) => Ok(Some(ServerInfo::read(&String::from_utf8_lossy(&text)))),
        Ok(Value::VerbatimString { text, .. } | Value::SimpleString(text)) => Ok(Some(ServerInfo::read(&text))),
        Ok(_) => Err(CommandError::UnexpectedReply),
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Concerns {
    /// Returns what the commands of all servers can compare.
    pub(in crate::store::redis) fn comparing(&self) -> Comparing {
        self.comparing.unwrap_or_default()
    }

    /// Adds what one server reports.
    fn add(&mut self, server: ServerInfo, master: bool) {
        self.comparing = Some(self.comparing.map_or(server.comparing, |others| others.and(server.comparing)));
        self.unguarded |= master && !server.guarded && !server.replica;
        self.replica |= server.replica;
        self.evicts = self.evicts.take().or(server.policy.filter(|policy| policy != "noeviction"));
    }

    /// Warns of new concerns.
    fn warn(&self, before: &Self) {
        if let (Some(policy), None) = (&self.evicts, &before.evicts) {
            warn_of(&format!(
                "Redis may drop records before their time: its `maxmemory-policy` is `{policy}`, and only `noeviction` is safe"
            ));
        }
        if self.unguarded && !before.unguarded {
            warn_of(
                "this Redis master goes on taking writes after the sentinels have put another in its place, even if it only \
                 stood still for a while: set `min-replicas-to-write 1` and give it two replicas",
            );
        }
        if self.replica && !before.replica {
            warn_of("this Redis server is a replica: kept answers are replayed, nothing new can be claimed");
        }
    }
}

impl ServerInfo {
    /// Reads the answer to `INFO`. A field that is missing counts as unset.
    fn read(info: &str) -> Self {
        let field = |name| info.lines().find_map(|text| text.trim_end().strip_prefix(name)?.strip_prefix(':'));
        let version = |name| {
            let mut numbers = field(name)?.split('.').map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        };
        Self {
            version: version("redis_version"),
            comparing: Comparing::of(version("redis_version"), version("valkey_version")),
            cluster: field("cluster_enabled") == Some("1"),
            replica: field("role") == Some("slave"),
            policy: field("maxmemory_policy").map(Into::into),
            // The field exists only if both settings of `min-replicas` are set.
            guarded: field("min_slaves_good_slaves").is_some(),
        }
    }

    /// Returns an error if the store cannot work with the server.
    fn check_supported(&self, clustered: bool) -> Result<(), StoreError> {
        let refuse = |why: String| Err(StoreError::new(StoreErrorKind::Misconfigured, why).without_effect());
        match self.version {
            Some(version) if version < OLDEST => {
                let ((major, minor), (least, _)) = (version, OLDEST);
                refuse(format!("the server is Redis {major}.{minor}, and {least}.0 is the oldest that will do"))
            }
            _ if self.cluster && !clustered => refuse("the server is one of a cluster, which takes a URL of `redis-cluster://` and the feature `redis-cluster`".into()),
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "tracing")]
fn warn_of(what: &str) {
    tracing::warn!("{what}");
}

#[cfg(not(feature = "tracing"))]
fn warn_of(_: &str) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str) -> ServerInfo {
        ServerInfo::read(&format!("# Server\r\nredis_version:{version}\r\nos:Linux\r\n"))
    }

    #[test]
    fn old_servers_and_those_of_a_cluster_are_refused() {
        for version in ["6.2.14", "6.0.0", "2.8.24"] {
            let error = server(version).check_supported(false).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
            assert!(error.to_string().contains("7.0"), "{error}");
        }
        for version in ["7.0.15", "7.2.4", "8.4.0", "10.0.0", "unknown"] {
            assert!(server(version).check_supported(false).is_ok(), "{version}");
        }
        let valkey = ServerInfo::read("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.8\r\n");
        assert_eq!((valkey.version, valkey.comparing), (Some((7, 2)), Comparing::Set));
        let one_of_many = ServerInfo { cluster: true, ..server("7.0.15") };
        assert!(one_of_many.check_supported(false).is_err() && one_of_many.check_supported(true).is_ok());
    }

    #[test]
    fn what_a_server_says_is_read() {
        let info = "redis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\nrole:slave\r\ncluster_enabled:0\r\n";
        let policy = Some("allkeys-lru".into());
        assert_eq!(
            ServerInfo::read(info),
            ServerInfo {
                version: Some((7, 0)),
                comparing: Comparing::Nothing,
                cluster: false,
                replica: true,
                policy,
                guarded: false
            }
        );
    }
}
