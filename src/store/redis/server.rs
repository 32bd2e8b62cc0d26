use redis::Value;

use crate::value::{StoreError, StoreErrorKind};

use super::{
    error::Trouble,
    line::{Line, Node},
};

const OLDEST: (u32, u32) = (7, 0);

/// What a server says about itself.
#[derive(Debug, PartialEq, Eq)]
struct Server {
    version: Option<(u32, u32)>,
    cluster: bool,
    replica: bool,
    policy: Option<String>,
}

/// Refuses a server that the store cannot work with, and warns of one that may lose records.
pub(super) async fn check(line: &Line) -> Result<(), StoreError> {
    for node in line.masters().await? {
        check_one(line, node.as_ref()).await?;
    }
    Ok(())
}

async fn check_one(line: &Line, node: Option<&Node>) -> Result<(), StoreError> {
    let said = match line.command_at(node, &redis::cmd("INFO")).await {
        Ok(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
        Ok(Value::VerbatimString { text, .. } | Value::SimpleString(text)) => text,
        Ok(_) => return Err(Trouble::Odd.into()),
        Err(Trouble::Failed(error)) if error.code() == Some("NOPERM") => {
            warn_of("the user of Redis may not ask `INFO`: version and eviction policy of the server are not checked");
            return Ok(());
        }
        Err(trouble) => return Err(trouble.into()),
    };
    let server = Server::read(&said);
    server.refuse(line.is_cluster())?;
    server.warn();
    Ok(())
}

impl Server {
    fn read(info: &str) -> Self {
        let field = |name| info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
        let version = field("redis_version").and_then(|version| {
            let mut numbers = version.split('.').map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        });
        Self {
            version,
            cluster: field("cluster_enabled") == Some("1"),
            replica: field("role") == Some("slave"),
            policy: field("maxmemory_policy").map(Into::into),
        }
    }

    fn refuse(&self, clustered: bool) -> Result<(), StoreError> {
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

    fn warn(&self) {
        if let Some(policy) = self.policy.as_deref().filter(|policy| *policy != "noeviction") {
            warn_of(&format!(
                "Redis may drop records before their time: its `maxmemory-policy` is `{policy}`, and only `noeviction` is safe"
            ));
        }
        if self.replica {
            warn_of("this Redis server is a replica: kept answers are replayed, nothing new can be claimed");
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

    fn server(version: &str) -> Server {
        Server::read(&format!("# Server\r\nredis_version:{version}\r\nos:Linux\r\n"))
    }

    #[test]
    fn old_servers_and_those_of_a_cluster_are_refused() {
        for version in ["6.2.14", "6.0.0", "2.8.24"] {
            let error = server(version).refuse(false).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
            assert!(error.to_string().contains("7.0"), "{error}");
        }
        for version in ["7.0.15", "7.2.4", "8.4.0", "10.0.0", "unknown"] {
            assert!(server(version).refuse(false).is_ok(), "{version}");
        }
        let one_of_many = Server { cluster: true, ..server("7.0.15") };
        assert!(one_of_many.refuse(false).is_err() && one_of_many.refuse(true).is_ok());
    }

    #[test]
    fn what_a_server_says_is_read() {
        let info = "redis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\nrole:slave\r\ncluster_enabled:0\r\n";
        let policy = Some("allkeys-lru".into());
        assert_eq!(Server::read(info), Server { version: Some((7, 0)), cluster: false, replica: true, policy });
    }
}
