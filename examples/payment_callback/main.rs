//! The callback of a payment platform, with every line of defence that it needs, and a storm that it has to stand.
//!
//! ```console
//! $ cargo run --example payment_callback --features json,sqlite
//! $ cargo run --example payment_callback --features json,sqlite,postgres -- --store postgres://app:secret@localhost/test
//! $ cargo run --example payment_callback --features json,sqlite,mysql -- --store mysql://app:secret@localhost/test
//! $ cargo run --example payment_callback --features json,sqlite,redis -- --front redis://localhost
//! ```
//!
//! The play starts a server process of its own, notifies it of payments as a platform would (twice, all at once, out of
//! order, forged, with wrong amounts), kills it in the middle, and in the end compares the books of both sides. Without
//! `--store` the books are in a file of SQLite in a temporary folder. In a database they are in tables whose names begin
//! with `payment_callback_`, which are made anew.
//!
//! With `--front`, duplicates of what is settled are answered by a Redis in front of the database, in which the platform's
//! repetitions find their answer without a connection of the database's.
//!
//! Read `service.rs` first: there is the route, and the handler.

mod database;
mod ledger;
mod platform;
mod play;
mod service;
mod shop;
mod signature;
mod storm;

use std::{
    env,
    error::Error,
    fs,
    path::PathBuf,
    process::{self, ExitCode},
};

#[cfg(feature = "mysql")]
use tower_idempotency::MySqlStore;
#[cfg(feature = "postgres")]
use tower_idempotency::PostgresStore;
#[cfg(feature = "sqlite")]
use tower_idempotency::SqliteStore;

type Failure = Box<dyn Error + Send + Sync>;

/// What both processes work on.
const RECORDS: &str = "payment_callback_records";
const MESSAGES: &str = "payment_callback_messages";

/// Does the same with a store, whatever database it is on.
macro_rules! with_store {
    ($url:expr, $store:ident => $work:expr) => {
        match $url.split(':').next() {
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => {
                let $store = PostgresStore::builder().table(RECORDS)?.connect($url).await?;
                $work
            }
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => {
                let $store = MySqlStore::builder().table(RECORDS)?.connect($url).await?;
                $work
            }
            #[cfg(feature = "sqlite")]
            Some("sqlite") => {
                let $store = SqliteStore::builder().table(RECORDS)?.connect($url).await?;
                $work
            }
            scheme => Err(format!("--store: {} is not served", scheme.unwrap_or_default()).into()),
        }
    };
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("payment_callback: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says whether the books balance.
async fn run() -> Result<bool, Failure> {
    let mut args: Vec<_> = env::args().skip(1).collect();
    let front = match args.iter().position(|arg| arg == "--front") {
        Some(at) if at + 1 < args.len() => args.drain(at..at + 2).nth(1),
        _ => None,
    };
    let books = |url: &str| Books { url: url.into(), front: front.clone() };
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let folder = Folder::new()?;
            let url = format!("sqlite://{}", folder.0.join("books.db").display());
            play(&books(&url)).await
        }
        ["--store", url] => play(&books(url)).await,
        // The play starts itself again with these.
        ["--serve", url] => serve(&books(url), None).await,
        ["--serve", url, "--stop-within", order] => serve(&books(url), Some(order.into())).await,
        _ => Err("usage: payment_callback [--store URL] [--front URL]".into()),
    }
}

/// Where the books are, and what stands in front of their records.
struct Books {
    url: String,
    front: Option<String>,
}

async fn play(books: &Books) -> Result<bool, Failure> {
    with_store!(&books.url, store => play::play(store, books).await)
}

async fn serve(books: &Books, stop_within: Option<String>) -> Result<bool, Failure> {
    with_store!(&books.url, store => service::serve(store, books.front.as_deref(), stop_within).await.map(|()| true))
}

/// A temporary folder, gone with its value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let path = env::temp_dir().join(format!("payment-callback-{}", process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
