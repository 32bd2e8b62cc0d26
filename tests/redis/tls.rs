//! Connections by TLS: whom they trust, and what is said if they cannot be opened.

use std::{
    env, fs,
    future::ready,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tower_idempotency::{
    RedisStore, StoreError,
    store::{Claimed, Finished, Store, StoreErrorKind},
    testing::suite,
};

use crate::{MINUTE, claim, connecting::all_that_is_shown, granted, key, replays, server::Server, settled, settlement};

/// One that signs certificates, with what it has in a folder of its own.
struct Authority(PathBuf);

impl Authority {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tower-idempotency-authority-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let authority = Self(env::temp_dir().join(&name));
        fs::create_dir_all(&authority.0).unwrap();
        fs::write(authority.0.join("config"), "[req]\ndistinguished_name = name\n[name]\n").unwrap();
        authority.make("authority", &name, &["-addext", "basicConstraints=critical,CA:TRUE"]);
        authority
    }

    fn pem(&self) -> String {
        self.read("authority.pem")
    }

    /// A certificate and its private key.
    fn certificate(&self, name: &str, host: &str) -> (String, String) {
        let host = format!("subjectAltName={host}");
        let signed = ["-CA", "authority.pem", "-CAkey", "authority.key", "-addext", &host];
        self.make(name, name, &[&signed[..], &["-addext", "basicConstraints=CA:FALSE"]].concat());
        (self.read(&format!("{name}.pem")), self.read(&format!("{name}.key")))
    }

    fn make(&self, name: &str, subject: &str, more: &[&str]) {
        let (key, pem, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={subject}"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-config", "config", "-days", "1", "-nodes", "-newkey", "ec"])
            .args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", &subject, "-keyout", &key, "-out", &pem])
            .args(more)
            .current_dir(&self.0)
            .output()
            .unwrap_or_else(|error| panic!("openssl is needed for these tests (Debian: openssl): {error}"));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const HERE: &str = "IP:127.0.0.1";

/// A server with a second port, which is for TLS.
struct Guarded {
    server: Server,
    port: u16,
    authority: Authority,
}

impl Guarded {
    fn start(host: &str, flags: &str) -> Self {
        Self::guard(Server::start(&[]), host, flags)
    }

    fn guard(server: Server, host: &str, flags: &str) -> Self {
        let authority = Authority::new();
        authority.certificate("server", host);
        assert!(server.tell("ACL SETUSER app on >a-secret ~* &* +@all").starts_with("+OK"));
        let file = |name| authority.0.join(name).display().to_string();
        let (authorities, own, private) = (file("authority.pem"), file("server.pem"), file("server.key"));
        // The port is free when it is looked for, and may be taken a moment later.
        for _ in 0..20 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let answer = server.tell(&format!(
                "CONFIG SET tls-ca-cert-file {authorities} tls-cert-file {own} tls-key-file {private} tls-port {port} {flags}"
            ));
            if answer.starts_with("+OK") {
                return Self { server, port, authority };
            }
            assert!(answer.contains("listen"), "{answer}");
        }
        panic!("no port is free for TLS");
    }

    /// For any client, whether it has a certificate or not.
    fn for_all() -> Self {
        Self::start(HERE, "tls-auth-clients no")
    }

    fn url(&self) -> String {
        format!("rediss://app:a-secret@127.0.0.1:{}", self.port)
    }

    async fn store(&self) -> RedisStore {
        RedisStore::builder().root_certificates(self.authority.pem()).connect(&self.url()).await.unwrap()
    }
}

/// It is refused for good, in words that say why and show no secret.
fn refused(error: &StoreError, why: &str) {
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Misconfigured, true), "{error:?}");
    assert!(error.to_string().contains(why), "{error:?}");
    let shown = all_that_is_shown(error);
    assert!(!shown.contains("secret") && !shown.contains("PRIVATE"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_every_store() {
    let server = Guarded::for_all();
    let store = server.store().await;
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
    // All came by the port for TLS, those who wait as well.
    let clients = server.server.tell("CLIENT LIST");
    let own: Vec<_> = clients.lines().filter(|client| client.contains(" user=app ")).collect();
    let secure = format!(" laddr=127.0.0.1:{} ", server.port);
    assert!(own.len() >= 2 && own.iter().all(|client| client.contains(&secure)), "{clients}");
}

#[tokio::test]
async fn a_cut_connection_is_made_anew() {
    let server = Guarded::for_all();
    let (store, other) = (server.store().await, server.store().await);
    let first = claim();
    granted(&store, &key("a"), &first).await;
    let waiter = tokio::spawn({
        let holder = first.claimant;
        async move { other.changed(&key("a"), holder, MINUTE).await }
    });
    sleep(Duration::from_millis(200)).await;
    for _ in 0..3 {
        server.server.cut();
        assert!(matches!(store.claim(&key("a"), &claim()).await.unwrap(), Claimed::Running { .. }));
        sleep(Duration::from_millis(300)).await;
    }
    assert!(!waiter.is_finished());
    server.server.cut();
    assert!(matches!(store.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::Done));
    timeout(MINUTE, waiter).await.unwrap().unwrap().unwrap();
    server.server.cut();
    replays(&store, &key("a")).await;
}

#[tokio::test]
async fn a_client_of_the_applications_brings_certificates_of_its_own() {
    let server = Guarded::for_all();
    let certificates = redis::TlsCertificates { client_tls: None, root_cert: Some(server.authority.pem().into()) };
    let client = redis::Client::build_with_tls(server.url(), certificates).unwrap();
    let store = RedisStore::builder().connect_client(client).await.unwrap();
    settled(&store, &key("a")).await;
    replays(&store, &key("a")).await;
}

#[tokio::test]
async fn a_server_whose_certificate_is_not_trusted_is_refused() {
    let server = Guarded::for_all();
    let stranger = RedisStore::builder().root_certificates(Authority::new().pem());
    refused(&stranger.connect(&server.url()).await.unwrap_err(), "not trusted");

    let elsewhere = Guarded::start("DNS:redis.internal", "tls-auth-clients no");
    let trusting = RedisStore::builder().root_certificates(elsewhere.authority.pem());
    refused(&trusting.connect(&elsewhere.url()).await.unwrap_err(), "not for this host");
}

#[tokio::test]
async fn one_end_without_tls_is_told() {
    let server = Guarded::for_all();
    let plain = server.url().replace("rediss://", "redis://");
    let error = RedisStore::connect(&plain).await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
    assert!(error.to_string().contains("its port is for TLS"), "{error:?}");
    assert!(!all_that_is_shown(&error).contains("secret"), "{error:?}");

    // Redis itself would wait for the end of a line.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let _ = stream.read(&mut [0; 1024]);
        stream.write_all(b"-ERR unknown command\r\n").unwrap();
    });
    let builder = RedisStore::builder().root_certificates(server.authority.pem());
    let error = builder.connect(&format!("rediss://:a-secret@127.0.0.1:{port}")).await.unwrap_err();
    refused(&error, "does not speak TLS");
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_is_shown_one() {
    let server = Guarded::start(HERE, "tls-auth-clients yes");
    let (certificate, private) = server.authority.certificate("client", HERE);
    let trusting = || RedisStore::builder().root_certificates(server.authority.pem());
    let builder = trusting().client_certificate(certificate, private);
    assert!(!format!("{builder:?}").contains("PRIVATE"), "{builder:?}");
    let store = builder.connect(&server.url()).await.unwrap();
    settled(&store, &key("a")).await;
    replays(&store, &key("a")).await;

    let (certificate, private) = Authority::new().certificate("client", HERE);
    for builder in [trusting(), trusting().client_certificate(certificate, private)] {
        refused(&builder.connect(&server.url()).await.unwrap_err(), "client's certificate");
    }
}

#[tokio::test]
async fn what_is_no_certificate_is_told() {
    let (certificate, private) = Authority::new().certificate("client", HERE);
    let secret = private.replace("PRIVATE", "SECRET");
    let url = "rediss://app:a-secret@127.0.0.1:1";
    for (builder, why) in [
        (RedisStore::builder().root_certificates(""), "root certificates"),
        (RedisStore::builder().root_certificates(private.clone()), "root certificates"),
        (RedisStore::builder().client_certificate(private.clone(), private.clone()), "client's certificate"),
        (RedisStore::builder().client_certificate(certificate.clone(), secret), "private key"),
    ] {
        refused(&builder.connect(url).await.unwrap_err(), why);
    }
    // Nobody who gives a certificate means to send a password in the clear.
    for url in ["redis://app:a-secret@127.0.0.1:1", "redis-cluster://127.0.0.1:1", "unix:///tmp/redis"] {
        let builder = RedisStore::builder().root_certificates(certificate.clone());
        refused(&builder.connect(url).await.unwrap_err(), "rediss://");
    }
    let (_, other) = Authority::new().certificate("client", HERE);
    let builder = RedisStore::builder().client_certificate(certificate, other);
    refused(&builder.connect(url).await.unwrap_err(), "set up");
}

#[cfg(feature = "redis-cluster")]
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster() {
    let alone = Server::start(&["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
    let server = Guarded::guard(alone, HERE, "tls-auth-clients no tls-cluster yes");
    for command in
        [format!("CONFIG SET cluster-announce-tls-port {}", server.port), "CLUSTER ADDSLOTSRANGE 0 16383".into()]
    {
        assert!(server.server.tell(&command).starts_with("+OK"));
    }
    let is_up = || server.server.tell("CLUSTER INFO").contains("cluster_state:ok");
    for _ in 0..200 {
        if is_up() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert!(is_up());
    let url = server.url().replace("rediss://", "rediss-cluster://");
    let store = RedisStore::builder().root_certificates(server.authority.pem()).connect(&url).await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
    let stranger = RedisStore::builder().root_certificates(Authority::new().pem());
    let error = stranger.connect(&url).await.unwrap_err();
    assert!(error.is_without_effect(), "{error:?}");
    let shown = all_that_is_shown(&error);
    assert!(shown.contains("certificate") && !shown.contains("secret"), "{shown}");
}

#[cfg(feature = "redis-sentinel")]
#[tokio::test(flavor = "multi_thread")]
async fn a_master_of_sentinels() {
    let server = Guarded::for_all();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let file = |name| server.authority.0.join(name).display().to_string();
    let rules = format!(
        "port 0\ntls-port {port}\nbind 127.0.0.1\nloglevel warning\ntls-replication yes\ntls-auth-clients no\n\
         tls-ca-cert-file {}\ntls-cert-file {}\ntls-key-file {}\nsentinel monitor shop 127.0.0.1 {} 1\n",
        file("authority.pem"),
        file("server.pem"),
        file("server.key"),
        server.port
    );
    fs::write(server.authority.0.join("sentinel.conf"), rules).unwrap();
    let _sentinel = Sentinel(
        Command::new("redis-server")
            .arg(file("sentinel.conf"))
            .arg("--sentinel")
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let url = format!("rediss-sentinel://app:a-secret@127.0.0.1:{port}/shop");
    let mut tries = 0;
    let store = loop {
        match RedisStore::builder().root_certificates(server.authority.pem()).connect(&url).await {
            Ok(store) => break store,
            Err(error) => assert!(error.is_temporary() && tries < 200, "{error:?}"),
        }
        tries += 1;
        sleep(Duration::from_millis(50)).await;
    };
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
    let stranger = RedisStore::builder().root_certificates(Authority::new().pem());
    refused(&stranger.connect(&url).await.unwrap_err(), "not trusted");
}

/// Ended by its own number.
#[cfg(feature = "redis-sentinel")]
struct Sentinel(std::process::Child);

#[cfg(feature = "redis-sentinel")]
impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
