//! One of the servers that are compared: `http-bench-server plain|memory|redis|by-hand first|replay URL-OF-A-REDIS`. It
//! says on which port of the loopback it serves. `http-bench-server settle URL-OF-A-REDIS` serves nothing: it says what
//! settling takes in Redis.

mod by_hand;
mod settle;

use std::{env, error::Error, time::Duration};

use axum::{Router, body::Bytes, http::StatusCode, routing::post};
use tokio::net::TcpListener;
use tower_idempotency::{IdempotencyLayer, MemoryStore, RedisStore};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let plain = Router::new().route("/orders", post(order));
    if let [mode, url] = &arguments[..]
        && mode == "settle"
    {
        return settle::show(url).await;
    }
    let app = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["plain", ..] => plain,
        ["memory", case, ..] => {
            let store = MemoryStore::builder().capacity(100_000_000).max_bytes(usize::MAX).build();
            // Of first requests, as many records expire as come.
            let retention = if case == "first" { Duration::from_millis(200) } else { Duration::from_secs(86_400) };
            plain.layer(IdempotencyLayer::new(store).retention(retention))
        }
        ["redis", _, url] => plain.layer(IdempotencyLayer::new(RedisStore::connect(url).await?)),
        ["by-hand", _, url] => by_hand::router(url).await?,
        _ => return Err("usage: http-bench-server plain|memory|redis|by-hand first|replay URL".into()),
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    axum::serve(listener, app).await?;
    Ok(())
}

/// Reads the body.
async fn order(_: Bytes) -> (StatusCode, [u8; 256]) {
    (StatusCode::CREATED, [b'x'; 256])
}
