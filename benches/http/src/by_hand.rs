//! What the layer sends to Redis, by hand: a `SET NX GET` that claims, and what settles: a `SET IFEQ` if the server has it,
//! else the script. Nothing else is done: no fingerprint is taken, no record understood, no answer put together.

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use redis::{IntoConnectionInfo, RedisError, Script, aio::MultiplexedConnection};

// What all scripts begin with, and the one that settles.
const SETTLE: &str = concat!(
    include_str!("../../../src/store/redis/lua/prelude.lua"),
    include_str!("../../../src/store/redis/lua/settle.lua")
);
const HEAD: usize = 107;
const OWNER: [u8; 16] = [7; 16];
const DAY: u64 = 86_400_000;

#[derive(Clone)]
struct Redis {
    connection: MultiplexedConnection,
    /// The script, if the server does not compare.
    digest: Option<String>,
}

pub async fn router(url: &str) -> Result<Router, RedisError> {
    // The sockets of the layer are set like this.
    let info = url.into_connection_info()?;
    let settings = info.tcp_settings().clone().set_nodelay(true);
    let client = redis::Client::open(info.set_tcp_settings(settings))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let compared: Result<(), _> =
        redis::cmd("SET").arg("none").arg(1).arg("IFEQ").arg(0).query_async(&mut connection).await;
    let digest = match compared {
        Ok(()) => None,
        Err(_) => Some(Script::new(SETTLE).load_async(&mut connection).await?),
    };
    Ok(Router::new().route("/orders", post(order)).with_state(Redis { connection, digest }))
}

async fn order(State(mut redis): State<Redis>, headers: HeaderMap, _: Bytes) -> (StatusCode, [u8; 256]) {
    match redis.ask(headers["idempotency-key"].as_bytes()).await {
        Ok(true) => (StatusCode::CREATED, [b'x'; 256]),
        Ok(false) => (StatusCode::OK, [b'x'; 256]),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, [b'x'; 256]),
    }
}

impl Redis {
    /// Two commands for a new key, one for a key that is there. Whether it was new.
    async fn ask(&mut self, key: &[u8]) -> Result<bool, RedisError> {
        let connection = &mut self.connection;
        let mut claim = redis::cmd("SET");
        claim.arg(key).arg(&running()).arg("NX").arg("GET").arg("PX").arg(DAY);
        let there: Option<Vec<u8>> = claim.query_async(connection).await?;
        if there.is_some() {
            return Ok(false);
        }
        if let Some(digest) = &self.digest {
            let mut settle = redis::cmd("EVALSHA");
            settle.arg(digest).arg(1).arg(key).arg(&OWNER).arg(&OWNER).arg("0").arg("8");
            settle.arg(&[0_u8; 20]).arg(&[b'x'; 300]).arg(DAY).arg("channel");
            let () = settle.query_async(connection).await?;
        } else {
            let mut settle = redis::cmd("SET");
            settle.arg(key).arg(&[b'x'; HEAD + 300]).arg("IFEQ").arg(&running()).arg("PX").arg(DAY);
            let () = settle.query_async(connection).await?;
        }
        Ok(true)
    }
}

/// The head of a record that runs, as the script reads it.
fn running() -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..2].copy_from_slice(&[2, 1]);
    head[2..18].copy_from_slice(&OWNER);
    head[95..103].copy_from_slice(&DAY.to_be_bytes());
    head
}
