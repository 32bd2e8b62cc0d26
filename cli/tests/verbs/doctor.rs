//! `doctor`, on servers that are set up well, and on those that are not.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor, Pool};
use tower_idempotency::{
    MySqlStore, PostgresStore, RedisStore,
    sql::{
        SqlDatabase, SqlStore,
        outbox::{Message, Relay, StagedMessage},
    },
};

use crate::{
    nodes::Nodes,
    server::Server,
    stand::{Done, Stand, key, tool},
};

/// Returns the severity and the text of a check.
fn check<'a>(answer: &'a Value, name: &str) -> (&'a str, &'a str) {
    let checks = answer["checks"].as_array().unwrap();
    let found = checks.iter().find(|found| found["check"] == name).unwrap_or_else(|| panic!("no {name}: {answer:#}"));
    let severity = found["severity"].as_str().unwrap();
    assert_eq!(found["remedy"].is_null(), matches!(severity, "ok" | "unknown"), "{found}");
    (severity, found["found"].as_str().unwrap())
}

fn has(answer: &Value, name: &str, severity: &str, text: &str) -> bool {
    let (told, found) = check(answer, name);
    assert!(told == severity && found.contains(text), "{name}: {answer:#}");
    true
}

fn stand(server: &Server) -> Beside {
    Beside(server.url())
}

/// A server that a store may refuse.
struct Beside(String);

impl Beside {
    fn tool(&self, arguments: &[&str]) -> Done {
        Done::new(&tool(&self.0).args(arguments).output().unwrap())
    }

    fn doctor(&self, arguments: &[&str]) -> (i32, Value) {
        self.tool(&[&["doctor", "--json"], arguments].concat()).doctor()
    }
}

pub(crate) async fn abandoned_records(stand: &Stand) {
    let (_, answer) = stand.doctor(&[]);
    let shape: Vec<_> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(shape, ["checks", "oldest_abandoned_ms", "outbox", "records", "severity", "store"]);
    assert!(has(&answer, "abandoned", "ok", "none"));
    assert!(!answer["store"].as_str().unwrap().contains("secret"));
    stand.abandon(&key("1")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    stand.abandon(&key("2")).await;
    let (_, answer) = stand.doctor(&[]);
    assert!(has(&answer, "abandoned", "ok", "2 records"));
    let (code, answer) = stand.doctor(&["--patience", "10ms"]);
    assert!(has(&answer, "abandoned", "warning", "2 records, the oldest lapsed") && code >= 5);
    assert!(answer["oldest_abandoned_ms"].as_u64().unwrap() >= 50, "{answer:#}");
    let (_, answer) = stand.doctor(&["--without-counts"]);
    assert_eq!(answer["records"], Value::Null);
}

pub(crate) async fn a_table_that_lacks_something<D: SqlDatabase>(stand: &Stand, store: &SqlStore<D>, drop_index: &str)
where
    for<'c> &'c Pool<D>: Executor<'c, Database = D>,
{
    let (_, answer) = stand.doctor(&["--table", "other"]);
    assert!(has(&answer, "schema", "ok", "complete, at version 1"));
    let later = "ALTER TABLE other ADD COLUMN later BIGINT";
    store.pool().execute(sqlx::raw_sql(later)).await.unwrap();
    let (code, answer) = stand.doctor(&["--table", "other"]);
    assert!(has(&answer, "schema", "warning", "newer than version 1: it also has later") && code >= 5);
    store.pool().execute(sqlx::raw_sql(AssertSqlSafe(drop_index.to_owned()))).await.unwrap();
    let (code, answer) = stand.doctor(&["--table", "other"]);
    assert!(has(&answer, "schema", "warning", "create the index other_due") && code >= 5);
    let (code, answer) = stand.doctor(&["--table", "missing"]);
    assert!(has(&answer, "schema", "critical", "create the table missing") && code == 6);
}

pub(crate) async fn messages_that_wait<D: SqlDatabase>(stand: &Stand, store: &SqlStore<D>) {
    let arguments = ["--patience", "10ms", "--outbox-table", "waiting"];
    let (_, answer) = stand.doctor(&arguments);
    assert!(has(&answer, "outbox", "ok", "none") && answer["outbox"].is_null());
    let outbox = store.outbox().table("waiting").unwrap();
    outbox.migrate().await.unwrap();
    let (_, answer) = stand.doctor(&arguments);
    assert!(has(&answer, "outbox", "ok", "no message waits") && answer["outbox"]["unsent"] == 0);
    let mut connection = store.pool().acquire().await.unwrap();
    outbox.stage(&mut connection, &Message::new("order.paid", "7")).await.unwrap();
    drop(connection);
    tokio::time::sleep(Duration::from_millis(30)).await;
    let (_, answer) = stand.doctor(&arguments);
    assert!(has(&answer, "outbox", "warning", "1 message unsent, 0 of them failing"));
    let relay = Relay::new(outbox.clone(), |_: StagedMessage| async { Err::<(), _>("the broker refuses") });
    assert_eq!(relay.run_once().await.unwrap().failed, 1);
    let (_, answer) = stand.doctor(&arguments);
    assert!(has(&answer, "outbox", "warning", "1 message unsent, 1 of them failing"));
}

pub(crate) fn of_sqlite(stand: &Stand, path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, answer) = stand.doctor(&[]);
    assert_eq!((code, &answer["severity"]), (0, &"ok".into()), "{answer:#}");
    assert!(has(&answer, "journal", "ok", "write-ahead log"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, answer) = stand.doctor(&[]);
    assert!(has(&answer, "file", "warning", "mode 644") && code == 5);
    let told = stand.tool(&["doctor"]).output;
    assert!(
        told.contains("warning   file") && told.contains("What to set right:\n") && told.contains("chmod o-rwx"),
        "{told}"
    );
}

pub(crate) async fn of_postgres(stand: &Stand, store: &PostgresStore) {
    // The server of the tests does not wait for its disk.
    let (code, answer) = stand.doctor(&[]);
    assert!(has(&answer, "persistence", "critical", "`fsync` is off") && code == 6);
    assert!(has(&answer, "version", "ok", "PostgreSQL 1") && has(&answer, "clock", "ok", "the same"));
    assert!(has(&answer, "role", "ok", "primary") && has(&answer, "tls", "ok", "on this machine"));
    let alter = "ALTER DATABASE postgres SET default_transaction_read_only = on";
    sqlx::raw_sql(alter).execute(store.pool()).await.unwrap();
    let (code, answer) = stand.doctor(&[]);
    assert!(has(&answer, "role", "critical", "read-only") && code == 6);
}

pub(crate) async fn of_mariadb(stand: &Stand, store: &MySqlStore) {
    let (code, answer) = stand.doctor(&[]);
    assert!(has(&answer, "persistence", "warning", "innodb_flush_log_at_trx_commit` is 2") && code == 5);
    assert!(has(&answer, "version", "ok", "MariaDB") && has(&answer, "clock", "ok", "the same"));
    assert!(has(&answer, "role", "ok", "takes writes"));
    sqlx::raw_sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1").execute(store.pool()).await.unwrap();
    assert_eq!(stand.doctor(&[]).0, 0);
    sqlx::raw_sql("SET GLOBAL read_only = 1").execute(store.pool()).await.unwrap();
    let (code, answer) = stand.doctor(&[]);
    assert!(has(&answer, "role", "critical", "read_only") && code == 6);
}

pub(crate) fn of_a_cluster(one: &Stand, nodes: &Nodes) {
    let (_, answer) = one.doctor(&["--cluster"]);
    assert!(has(&answer, "cluster", "ok", "16,384 slots served") && has(&answer, "role", "ok", "master"));
    let (code, answer) = one.doctor(&[]);
    assert!(has(&answer, "cluster", "critical", "one of a cluster") && code == 6);
    // A single master that evicts is found, whichever server is asked.
    nodes.masters()[2].tell("CONFIG SET maxmemory 100mb");
    nodes.masters()[2].tell("CONFIG SET maxmemory-policy allkeys-lru");
    let (code, answer) = one.doctor(&["--cluster"]);
    let port = nodes.masters()[2].port().to_string();
    assert!(has(&answer, "eviction", "critical", &port) && code == 6);
}

#[test]
fn a_redis_that_is_set_up_well_is_in_order() {
    let server = Server::start(&["--appendonly", "yes"]);
    let (code, answer) = stand(&server).doctor(&[]);
    assert_eq!((code, &answer["severity"]), (0, &"ok".into()), "{answer:#}");
    assert!(has(&answer, "persistence", "ok", "once a second") && has(&answer, "eviction", "ok", "noeviction"));
    assert!(has(&answer, "clock", "ok", "the same") && has(&answer, "records", "ok", "0 settled"));
}

#[test]
fn a_redis_that_evicts_and_keeps_nothing_is_found() {
    let server = Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let (code, answer) = stand(&server).doctor(&[]);
    assert!(has(&answer, "eviction", "critical", "allkeys-lru, from 105 MB on") && code == 6);
    assert!(has(&answer, "persistence", "critical", "a restart loses all records"));
    server.tell("CONFIG SET maxmemory 0");
    server.tell("CONFIG SET save 60");
    let told = stand(&server).tool(&["doctor"]);
    assert!(told.code == 6 || told.code == 5, "{told:?}");
    assert!(told.output.contains("What to set right:"), "{told:?}");
}

#[test]
fn a_replica_is_found() {
    let master = Server::start(&["--appendonly", "yes"]);
    let port = master.port().to_string();
    let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {port}")]);
    let (code, answer) = stand(&replica).doctor(&[]);
    assert!(has(&answer, "role", "critical", "a replica of 127.0.0.1") && code == 6);
    // The master goes on taking writes if it is replaced.
    let began = std::time::Instant::now();
    while !master.tell("INFO replication").contains("state=online") && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (code, answer) = stand(&master).doctor(&[]);
    assert!(has(&answer, "replicas", "warning", "`min-replicas-to-write` is not set") && code == 5);
}

#[test]
fn what_a_user_may_not_ask_is_unknown() {
    let server = Server::start(&[]);
    assert!(server.tell("ACL SETUSER app on >hidden ~* &* +@all -info -config -time").starts_with("+OK"));
    let url = format!("redis://app:hidden@127.0.0.1:{}", server.port());
    let (code, answer) = Beside(url).doctor(&[]);
    assert!(has(&answer, "settings", "unknown", "may not ask INFO") && code == 0);
    assert!(has(&answer, "clock", "unknown", "may not"));
    assert!(!answer.to_string().contains("hidden"));
}

#[test]
fn a_connection_across_the_network_without_tls_is_found() {
    let server = Server::start(&["--appendonly", "yes", "--bind", "*", "--protected-mode", "no"]);
    // An address that is not known to be one of this machine.
    let url = format!("redis://[::ffff:7f00:1]:{}", server.port());
    let (code, answer) = Beside(url).doctor(&[]);
    assert!(has(&answer, "tls", "warning", "not encrypted") && code == 5);
}

#[test]
fn clocks_that_differ_are_found() {
    let places = ["x86_64", "aarch64"].map(|machine| format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1"));
    let library = places.iter().find(|path| Path::new(path).exists());
    let library = library.expect("libfaketime is needed for this test (Debian: libfaketime)");
    let server = Server::start(&["--appendonly", "yes"]);
    for (offset, word) in [("-120s", "ahead of"), ("+120s", "behind")] {
        let mut command = tool(&server.url());
        command.env("LD_PRELOAD", library).env("FAKETIME", offset).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let done = Done::new(&command.args(["doctor", "--json"]).output().unwrap());
        let answer: Value = serde_json::from_str(&done.output).unwrap();
        assert!(has(&answer, "clock", "warning", word) && done.code == 5, "{answer:#}");
    }
}

#[test]
fn a_server_that_is_away_is_critical() {
    let mut server = Server::start(&[]);
    server.kill();
    let (code, answer) = stand(&server).doctor(&["--timeout", "500ms"]);
    assert!(has(&answer, "connection", "critical", "") && code == 6);
    let (code, answer) = Beside("postgres://app:hidden@127.0.0.1:1/shop".into()).doctor(&[]);
    assert!(has(&answer, "connection", "critical", "refused") && code == 6 && !answer.to_string().contains("hidden"));
}

#[tokio::test]
async fn the_store_is_asked_as_the_application_asks_it() {
    let server = Server::start(&["--appendonly", "yes"]);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let stand = Stand::new(&server.url(), store);
    stand.settle(&key("1"), "kept").await;
    assert_eq!(stand.doctor(&[]).1["records"]["settled"], 1);
}
