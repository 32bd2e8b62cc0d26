//! A newer server, played by an older one: the connection takes the commands that the newer one has, and sends a script in
//! their place.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redis::{
    Arg, Cmd, Pipeline, RedisError, RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tower_idempotency::RedisStore;

use crate::server::Server;

pub(crate) const VALKEY_8_1: &str = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.3\r\n";
pub(crate) const VALKEY_9_0: &str = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\n";
pub(crate) const REDIS_8_4: &str = "redis_version:8.4.0\r\n";

const SET: &str = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])";
const DELETE: &str = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

/// What the server is like.
#[derive(Default)]
pub(crate) struct Manner {
    /// What it reports about itself.
    info: &'static str,
    /// What it answers to a command that compares.
    pub(crate) refusal: Option<&'static str>,
    /// The answer to the next command that compares is lost on the way.
    pub(crate) loses_an_answer: bool,
    /// How often it was sent which command.
    sent: BTreeMap<String, u32>,
}

/// A connection to a server of a newer version.
#[derive(Clone)]
pub(crate) struct Newer {
    connection: MultiplexedConnection,
    manner: Arc<Mutex<Manner>>,
}

impl Newer {
    pub(crate) async fn connect(server: &Server, info: &'static str) -> Self {
        let client = redis::Client::open(server.url()).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        Self { connection, manner: Arc::new(Mutex::new(Manner { info, ..Manner::default() })) }
    }

    pub(crate) async fn store(&self) -> RedisStore {
        RedisStore::builder().with_connection(self.clone()).await.unwrap()
    }

    pub(crate) fn manner(&self) -> MutexGuard<'_, Manner> {
        self.manner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was sent since the last time.
    pub(crate) fn sent(&self) -> Vec<(String, u32)> {
        std::mem::take(&mut self.manner().sent).into_iter().collect()
    }

    /// Returns the command that the older server is sent instead.
    fn translate(&self, command: &Cmd) -> Option<Cmd> {
        let words: Vec<&[u8]> = command
            .args_iter()
            .map(|word| match word {
                Arg::Simple(word) => word,
                _ => b"",
            })
            .collect();
        let script = |text: &str, words: &[&[u8]]| {
            let mut command = redis::cmd("EVAL");
            command.arg(text).arg(1).arg(words);
            Some(command)
        };
        let info = self.manner().info;
        match *words {
            [b"SET", name, new, b"IFEQ", old, b"PX", life] => script(SET, &[name, old, new, life]),
            [b"DELEX", name, b"IFEQ", old] if info == REDIS_8_4 => script(DELETE, &[name, old]),
            [b"DELIFEQ", name, old] if info == VALKEY_9_0 => script(DELETE, &[name, old]),
            _ => None,
        }
    }

    async fn answer(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        let verb = match command.args_iter().next() {
            Some(Arg::Simple(verb)) => String::from_utf8_lossy(verb).into_owned(),
            _ => String::new(),
        };
        let info = {
            let mut manner = self.manner();
            *manner.sent.entry(verb.clone()).or_default() += 1;
            manner.info
        };
        let Some(other) = self.translate(command) else {
            return match &*verb {
                "INFO" => Ok(Value::SimpleString(info.into())),
                _ => self.connection.send_packed_command(command).await,
            };
        };
        let (refusal, is_lost) = {
            let mut manner = self.manner();
            (manner.refusal, std::mem::take(&mut manner.loses_an_answer))
        };
        let answer = match refusal {
            Some(text) if !is_lost => redis::parse_redis_value(format!("-{text}\r\n").as_bytes()),
            _ => self.connection.send_packed_command(&other).await,
        };
        if is_lost { Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()) } else { answer }
    }
}

impl ConnectionLike for Newer {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.answer(command))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        skip: usize,
        keep: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        *self.manner().sent.entry("a batch".to_owned()).or_default() += 1;
        self.connection.req_packed_commands(pipeline, skip, keep)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}
