//! What follows from `INFO`.

use redis::{aio::MultiplexedConnection, cmd};

use crate::{show::thousands, store_url::StoreUrl};

use super::super::finding::Finding;

/// The oldest version that the store works with.
const OLDEST: u32 = 7;

/// The answer of `INFO`.
pub(super) struct Info<'a>(&'a str);

impl<'a> Info<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

/// Returns the findings of one server. The connection is for what `INFO` does not say.
pub(super) async fn checks(info: &Info<'_>, url: &StoreUrl, connection: &mut MultiplexedConnection) -> Vec<Finding> {
    let setting = async |connection: &mut MultiplexedConnection, name: &str| {
        let pair = cmd("CONFIG").arg("GET").arg(name).query_async::<Vec<String>>(connection).await;
        pair.ok().and_then(|pair| pair.into_iter().nth(1))
    };
    let saves = setting(connection, "save").await;
    let fsync = setting(connection, "appendfsync").await;
    let mut findings = vec![
        version(info),
        role(info),
        eviction(info),
        memory(info),
        persistence(info, saves.as_deref(), fsync.as_deref()),
    ];
    findings.extend(replication(info, url.is_sentinel()));
    let state = match info.text("cluster_enabled") {
        Some("1") => cmd("CLUSTER").arg("INFO").query_async::<String>(connection).await.ok(),
        _ => None,
    };
    findings.extend(cluster(info, url.is_cluster(), state.as_deref()));
    findings
}

fn version(info: &Info<'_>) -> Finding {
    if let Some(version) = info.text("valkey_version") {
        return Finding::good("version", format!("Valkey {version}"));
    }
    let Some(version) = info.text("redis_version") else {
        return Finding::unknown("version", "the server does not say");
    };
    let major: Option<u32> = version.split('.').next().and_then(|major| major.parse().ok());
    let found = format!("Redis {version}");
    if major.is_some_and(|major| major < OLDEST) {
        return Finding::critical("version", found, "the store needs Redis 7.0 or newer, or Valkey");
    }
    Finding::good("version", found)
}

fn role(info: &Info<'_>) -> Finding {
    match info.text("role") {
        Some("master") => Finding::good("role", "master"),
        Some("slave") => {
            let master = info.text("master_host").unwrap_or("another server");
            let remedy = "connect to the master: on a replica kept answers are replayed, and every new request fails";
            Finding::critical("role", format!("a replica of {master}"), remedy)
        }
        _ => Finding::unknown("role", "the server does not say"),
    }
}

fn eviction(info: &Info<'_>) -> Finding {
    let limit = info.number("maxmemory").unwrap_or(0);
    let remedy = "set `maxmemory-policy noeviction`: an evicted record is lost, and its operation runs again";
    match info.text("maxmemory_policy") {
        None => Finding::unknown("eviction", "the server does not say"),
        Some("noeviction") => Finding::good("eviction", "noeviction"),
        Some(policy) if limit == 0 => {
            Finding::warning("eviction", format!("{policy}, of no effect while `maxmemory` is not set"), remedy)
        }
        Some(policy) => Finding::critical("eviction", format!("{policy}, from {} on", megabytes(limit)), remedy),
    }
}

fn memory(info: &Info<'_>) -> Finding {
    let (Some(used), limit) = (info.number("used_memory"), info.number("maxmemory").unwrap_or(0)) else {
        return Finding::unknown("memory", "the server does not say");
    };
    if limit == 0 {
        return Finding::good("memory", format!("{} used, without a limit", megabytes(used)));
    }
    let found = format!("{} used of {}", megabytes(used), megabytes(limit));
    if used > limit / 10 * 9 {
        return Finding::warning(
            "memory",
            found,
            "give the server more memory, or shorten retentions: a full server refuses new requests",
        );
    }
    Finding::good("memory", found)
}

/// Returns whether records survive a restart. `saves` and `fsync` are missing if the user may not ask.
fn persistence(info: &Info<'_>, saves: Option<&str>, fsync: Option<&str>) -> Finding {
    let remedy = "set `appendonly yes` and `appendfsync everysec`, or `always` if no answer may be lost";
    match (info.text("aof_enabled"), fsync, saves) {
        (Some("1"), Some("no"), _) => {
            Finding::warning("persistence", "append-only file, written whenever the system likes", remedy)
        }
        (Some("1"), Some("always"), _) => Finding::good("persistence", "append-only file, written with each change"),
        (Some("1"), Some(_), _) => Finding::good("persistence", "append-only file, written once a second"),
        (Some("1"), None, _) => Finding::good("persistence", "append-only file"),
        (Some(_), _, Some("")) if info.number("connected_slaves").unwrap_or(0) > 0 => {
            Finding::warning("persistence", "none: records are in memory, here and on the replicas", remedy)
        }
        (Some(_), _, Some("")) => Finding::critical("persistence", "none: a restart loses all records", remedy),
        (Some(_), _, Some(_)) => {
            Finding::warning("persistence", "snapshots: a restart loses what came after the last one", remedy)
        }
        (Some(_), _, None) => Finding::warning("persistence", "no append-only file", remedy),
        (None, ..) => Finding::unknown("persistence", "the server does not say"),
    }
}

/// Returns whether a master that was replaced would go on taking writes, if there are replicas to replace it.
fn replication(info: &Info<'_>, sentinels: bool) -> Option<Finding> {
    let replicas = info.number("connected_slaves").filter(|_| info.text("role") == Some("master"))?;
    if replicas == 0 && !sentinels {
        return None;
    }
    let found = format!("{replicas} connected");
    if info.text("min_slaves_good_slaves").is_some() {
        return Some(Finding::good("replicas", format!("{found}, and `min-replicas-to-write` is set")));
    }
    let remedy = "set `min-replicas-to-write 1`, with two replicas: a master that was replaced while it stood still would \
                  go on granting claims";
    Some(Finding::warning("replicas", format!("{found}, `min-replicas-to-write` is not set"), remedy))
}

fn cluster(info: &Info<'_>, expected: bool, state: Option<&str>) -> Option<Finding> {
    let enabled = info.text("cluster_enabled") == Some("1");
    if enabled && !expected {
        let remedy = "use a URL that names several servers, or --cluster; in the application `redis-cluster://`";
        return Some(Finding::critical(
            "cluster",
            "the server is one of a cluster, and the URL says otherwise",
            remedy,
        ));
    }
    if !enabled {
        let remedy = "use a URL with one server, without --cluster";
        return expected.then(|| Finding::critical("cluster", "the server is none of a cluster", remedy));
    }
    let state = state.map(Info::new)?;
    let slots = state.number("cluster_slots_ok").unwrap_or(0);
    let found = format!("{} slots served of 16,384", thousands(slots));
    if state.text("cluster_state") == Some("ok") && slots == 16_384 {
        return Some(Finding::good("cluster", found));
    }
    Some(Finding::critical("cluster", found, "see `redis-cli --cluster check`: requests for the other slots fail"))
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", thousands(bytes.div_ceil(1_000_000)))
}
