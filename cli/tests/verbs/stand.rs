//! A store, and the tool beside it.

use std::{
    process::{Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tower_idempotency::{
    MySqlStore, PostgresStore, RedisStore, SqliteStore,
    store::{Claim, Claimed, RecordKey, Settlement, StoreAdmin},
};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A store that has namespaces.
pub(crate) trait Spaced: StoreAdmin + Clone + 'static {
    fn space(&self, name: &str) -> Self;
}

macro_rules! spaced {
    ($($store:ty),*) => {
        $(impl Spaced for $store {
            fn space(&self, name: &str) -> Self {
                self.namespace(name)
            }
        })*
    };
}
spaced!(MySqlStore, PostgresStore, RedisStore, SqliteStore);

/// Returns a namespace by its name.
type Namespaces = Arc<dyn Fn(&str) -> Arc<dyn StoreAdmin> + Send + Sync>;

/// A store with its URL, and one of its namespaces.
pub(crate) struct Stand {
    url: String,
    pub(crate) store: Arc<dyn StoreAdmin>,
    namespaced: Namespaces,
    namespace: Option<String>,
}

impl Stand {
    pub(crate) fn new(url: &str, store: impl Spaced) -> Self {
        let root: Arc<dyn StoreAdmin> = Arc::new(store.clone());
        let namespaced = Arc::new(move |name: &str| Arc::new(store.space(name)) as Arc<dyn StoreAdmin>);
        Self { url: url.to_owned(), store: root, namespaced, namespace: None }
    }

    pub(crate) fn with_namespace(&self, name: &str) -> Self {
        println!("{name}");
        let (store, namespaced) = ((self.namespaced)(name), Arc::clone(&self.namespaced));
        Self { url: self.url.clone(), store, namespaced, namespace: Some(name.to_owned()) }
    }

    /// Runs the tool without a terminal.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Done {
        let mut command = tool(&self.url);
        command.args(arguments);
        if let Some(namespace) = &self.namespace {
            command.args(["--namespace", namespace]);
        }
        let output = command.output().unwrap();
        Done::new(&output)
    }

    /// Runs a verb that has to succeed, and returns its answer.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let done = self.tool(&[arguments, &["--json"]].concat());
        assert_eq!((done.code, &*done.error), (0, ""), "{arguments:?}: {}", done.output);
        serde_json::from_str(&done.output).unwrap()
    }

    /// Runs `doctor`, and returns its exit code and its answer.
    pub(crate) fn doctor(&self, arguments: &[&str]) -> (i32, Value) {
        self.tool(&[&["doctor", "--json"], arguments].concat()).doctor()
    }

    /// Claims a key for an hour.
    pub(crate) async fn run(&self, key: &RecordKey) -> Claim {
        self.claim(key, Claim::new(HOUR, HOUR)).await
    }

    /// Claims a key by a runner that is gone.
    pub(crate) async fn abandon(&self, key: &RecordKey) -> Claim {
        let claim = self.claim(key, Claim::new(Duration::from_millis(1), HOUR)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        claim
    }

    pub(crate) async fn claim(&self, key: &RecordKey, claim: Claim) -> Claim {
        assert!(matches!(self.store.claim(key, &claim).await.unwrap(), Claimed::Granted(_)));
        claim
    }

    pub(crate) async fn settle(&self, key: &RecordKey, answer: &str) {
        let claim = self.run(key).await;
        let answer = bytes::Bytes::copy_from_slice(answer.as_bytes());
        self.store.settle(key, &Settlement::new(claim.claimant, Some(answer), HOUR)).await.unwrap();
    }
}

/// The tool, with a URL in its environment.
pub(crate) fn tool(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tower-idempotency"));
    command.env("TOWER_IDEMPOTENCY_URL", url).stdin(Stdio::null());
    command
}

/// What a process has printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) error: String,
}

impl Done {
    pub(crate) fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { code: output.status.code().unwrap(), output: text(&output.stdout), error: text(&output.stderr) }
    }
}

impl Done {
    /// Returns the exit code and the answer of `doctor`.
    pub(crate) fn doctor(&self) -> (i32, Value) {
        assert_eq!(self.error, "");
        (self.code, serde_json::from_str(&self.output).unwrap())
    }
}

pub(crate) fn key(key: &str) -> RecordKey {
    RecordKey::new("/orders/{id}", Some("ann"), key).unwrap()
}

/// The arguments that name a [`key`].
pub(crate) fn named<'a>(verb: &'a str, key: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    [&[verb, key, "--route", "/orders/{id}", "--scope", "ann"], further].concat()
}
