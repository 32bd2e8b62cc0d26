//! What is refused, warned of and shown when a store connects.

use std::{
    fmt,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

use tower_idempotency::{
    RedisStore, StoreError,
    store::{RecordKey, Store, StoreErrorKind},
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::{claim, key, server::Server};

/// A server of another version, which knows no more than what it is.
fn impostor(version: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let info = format!("redis_version:{version}\r\n");
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            while let Some(line) = lines.next() {
                // `*3`, then a length and a word for each of the three.
                let Some(words) = line.strip_prefix('*').and_then(|words| words.parse::<usize>().ok()) else { break };
                let command: Vec<_> = lines.by_ref().take(words * 2).collect();
                let answer = match command.get(1).map(|name| name.to_uppercase()) {
                    Some(name) if name == "INFO" => format!("${}\r\n{info}\r\n", info.len()),
                    _ => "+OK\r\n".into(),
                };
                if stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    port
}

pub(crate) fn all_that_is_shown(error: &StoreError) -> String {
    format!("{error} {error:?} {:?}", std::error::Error::source(error).map(ToString::to_string))
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let error = RedisStore::connect(&format!("redis://127.0.0.1:{}", impostor("6.2.14"))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("6.2") && error.to_string().contains("7.0"), "{error}");
    RedisStore::connect(&format!("redis://127.0.0.1:{}", impostor("7.2.4"))).await.unwrap();
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused() {
    let server = Server::start(&["--cluster-enabled", "yes"]);
    let error = RedisStore::connect(&server.url()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("cluster"), "{error}");
}

#[tokio::test]
async fn secrets_are_not_shown() {
    let server = Server::start(&["--requirepass", "right-secret"]);
    let url = |password: &str| format!("redis://:{password}@127.0.0.1:{}", server.port());
    let store = RedisStore::connect(&url("right-secret")).await.unwrap();
    assert!(!format!("{store:?}").contains("secret") && format!("{store:?}").contains("127.0.0.1"), "{store:?}");

    let error = RedisStore::connect(&url("wrong-secret")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error:?}");
    assert!(!all_that_is_shown(&error).contains("secret"), "{error:?}");
    let error = RedisStore::connect(&server.url()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error:?}");
    for url in
        ["redis://user:secret@", "http://:secret@host", "secret", "redis://:secret@host:port", "redis://host/secret"]
    {
        let error = RedisStore::connect(url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{url}: {error:?}");
        assert!(!all_that_is_shown(&error).contains("secret"), "{url}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_not_waited_for() {
    let error = RedisStore::connect("redis://127.0.0.1:1").await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
}

/// Nothing listens there; TLS has nothing to do with it.
#[tokio::test]
async fn a_refused_connection_is_called_so() {
    let urls = [
        "redis://127.0.0.1:1",
        #[cfg(feature = "redis-tls")]
        "rediss://127.0.0.1:1",
        #[cfg(feature = "redis-sentinel")]
        "redis-sentinel://127.0.0.1:1,127.0.0.1:2/shop",
        #[cfg(feature = "redis-cluster")]
        "redis-cluster://127.0.0.1:1,127.0.0.1:2",
    ];
    for url in urls {
        let error = RedisStore::connect(url).await.unwrap_err();
        assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{url}: {error:?}");
        assert!(
            error.to_string().contains("connection refused") && !error.to_string().contains("TLS"),
            "{url}: {error:?}"
        );
    }
}

/// What claims come to, once nothing listens there any more. The driver for clusters need not say why a connection does not
/// come about.
async fn refused(store: &RedisStore, keys: &[RecordKey], what: &str) {
    let mut said = String::new();
    for key in keys.iter().cycle().take(100) {
        // What was on its way when the server went is another matter.
        let error = store.claim(key, &claim()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{what}: {error:?}");
        assert!(!error.to_string().contains("TLS"), "{what}: {error:?}");
        said = error.to_string();
        if said.contains("refused") {
            println!("{what}: {said}");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(what.contains("cluster") && said == "the connection to Redis is lost", "{what}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_gone_refuses_connections() {
    let keys: Vec<_> = (0..40).map(|n| key(&n.to_string())).collect();
    let mut server = Server::start(&[]);
    let store = server.store().await;
    server.kill();
    refused(&store, &keys, "one server").await;

    #[cfg(feature = "redis-cluster")]
    {
        use crate::cluster::nodes::{Nodes, slot};

        let mut nodes = Nodes::start();
        let store = nodes.store().await;
        nodes.forbid_failover();
        let lost: Vec<_> = keys.iter().filter(|key| nodes.owned_by_first(slot(key))).cloned().collect();
        nodes.kill_first();
        refused(&store, &lost, "one server of a cluster").await;
        nodes.kill_others();
        refused(&store, &keys, "a cluster").await;
    }

    #[cfg(feature = "redis-sentinel")]
    {
        let mut group = crate::sentinel::group::Group::start().await;
        let store = RedisStore::connect(&group.url()).await.unwrap();
        group.servers.iter_mut().for_each(Server::kill);
        refused(&store, &keys, "a master that sentinels watch").await;
    }
}

#[tokio::test]
async fn a_url_without_a_scheme_is_told_so() {
    for url in ["127.0.0.1:6379", "localhost", "user:secret@localhost:6379"] {
        let error = RedisStore::connect(url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{url}: {error:?}");
        assert!(error.to_string().contains("redis://") && !all_that_is_shown(&error).contains("secret"), "{error:?}");
    }
}

/// Settings may be changed at any time, and lost by a restart: each is reported once.
#[tokio::test]
async fn eviction_that_is_allowed_later_is_warned_of_once() {
    let mut server = Server::start(&[]);
    let heard = Heard::default();
    let guard = tracing::subscriber::set_default(heard.clone());
    let _store = server.store().await;
    let told = || heard.0.lock().unwrap().iter().filter(|warning| warning.contains("maxmemory-policy")).count();
    let told_by_now = async |times| {
        for _ in 0..300 {
            if told() == times {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(told(), times);
    };
    server.tell("CONFIG SET maxmemory-policy allkeys-lru");
    told_by_now(1).await;
    server.tell("CONFIG SET maxmemory-policy noeviction");
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(told(), 1);
    server.kill();
    server.start_slowly(&["--maxmemory-policy", "volatile-ttl"]);
    told_by_now(2).await;
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(told(), 2);
    drop(guard);
}

#[tokio::test]
async fn eviction_is_warned_of() {
    for (policy, warned) in [("noeviction", false), ("allkeys-lru", true), ("volatile-ttl", true)] {
        let server = Server::start(&["--maxmemory-policy", policy]);
        let heard = Heard::default();
        let guard = tracing::subscriber::set_default(heard.clone());
        server.store().await;
        drop(guard);
        let warnings = heard.0.lock().unwrap().clone();
        let told = warnings.iter().any(|warning| warning.contains("maxmemory-policy") && warning.contains(policy));
        assert_eq!(told, warned, "{policy}: {warnings:?}");
    }
}

/// Keeps warnings.
#[derive(Clone, Default)]
pub(crate) struct Heard(pub(crate) Arc<Mutex<Vec<String>>>);

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        let _ = fmt::Write::write_fmt(&mut self.0, format_args!("{value:?}"));
    }
}
