//! What transaction mode costs beside the business transaction that it surrounds, in one run for each database.
//!
//! ```console
//! $ scripts/with-server postgres cargo bench --all-features --bench transactions -- {url}
//! $ scripts/with-server mariadb cargo bench --all-features --bench transactions -- {url}
//! $ cargo bench --all-features --bench transactions -- sqlite:///var/tmp/bench.db --quick
//! ```
//!
//! The business transaction changes one account's balance and writes one line into a ledger: two statements between
//! `BEGIN` and `COMMIT`, on a connection of the pool, in an Axum handler. Behind the layer the handler does the same in
//! the transaction that it is given. Both take turns within a round, since a disk is quicker at one time than at another;
//! a ratio is the median of the rounds' ratios.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::{
    env,
    time::{Duration, Instant},
};

use axum::{Router, body::Body, extract::State, http::Request, routing::post};
use http_body_util::BodyExt;
use sqlx::Pool;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer,
    sql::{SqlDatabase, SqlStore, Tx},
};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (flags, urls): (Vec<_>, Vec<_>) = env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let (rounds, calls) = if flags.iter().any(|flag| flag == "--quick") { (5, 100) } else { (15, 200) };
    assert!(!urls.is_empty(), "give the URLs of databases; see the beginning of benches/transactions.rs");
    for url in &urls {
        match url.split(':').next() {
            Some("postgres" | "postgresql") => compare::<sqlx::Postgres>(url, rounds, calls).await,
            Some("mysql" | "mariadb") => compare::<sqlx::MySql>(url, rounds, calls).await,
            Some("sqlite") => compare::<sqlx::Sqlite>(url, rounds, calls).await,
            _ => panic!("{url} is no database's"),
        }
    }
}

/// A database that a bench runs on.
trait Bench: SqlDatabase {
    async fn open(url: &str) -> SqlStore<Self>;

    async fn prepare(pool: &Pool<Self>);

    fn transfer(connection: &mut Self::Connection) -> impl Future<Output = ()> + Send;
}

macro_rules! bench {
    ($database:ident: $update:literal, $insert:literal) => {
        impl Bench for sqlx::$database {
            async fn open(url: &str) -> SqlStore<Self> {
                SqlStore::<Self>::connect(url).await.unwrap()
            }

            async fn prepare(pool: &Pool<Self>) {
                for text in [
                    "DROP TABLE IF EXISTS accounts",
                    "DROP TABLE IF EXISTS ledger",
                    "DROP TABLE IF EXISTS idempotency_records",
                    "CREATE TABLE accounts (owner VARCHAR(40) PRIMARY KEY, cents BIGINT NOT NULL)",
                    "CREATE TABLE ledger (owner VARCHAR(40) NOT NULL, cents BIGINT NOT NULL)",
                    "INSERT INTO accounts VALUES ('ann', 0)",
                ] {
                    sqlx::raw_sql(text).execute(pool).await.unwrap();
                }
            }

            async fn transfer(connection: &mut Self::Connection) {
                sqlx::query($update).bind(5_i64).bind("ann").execute(&mut *connection).await.unwrap();
                sqlx::query($insert).bind("ann").bind(5_i64).execute(&mut *connection).await.unwrap();
            }
        }
    };
}

bench!(Postgres: "UPDATE accounts SET cents = cents + $1 WHERE owner = $2", "INSERT INTO ledger VALUES ($1, $2)");
bench!(MySql: "UPDATE accounts SET cents = cents + ? WHERE owner = ?", "INSERT INTO ledger VALUES (?, ?)");
bench!(Sqlite: "UPDATE accounts SET cents = cents + ? WHERE owner = ?", "INSERT INTO ledger VALUES (?, ?)");

async fn alone<D: Bench>(State(pool): State<Pool<D>>) -> &'static str {
    let mut transaction = pool.begin().await.unwrap();
    D::transfer(&mut transaction).await;
    transaction.commit().await.unwrap();
    "transferred"
}

async fn in_transaction<D: Bench>(mut tx: Tx<D>) -> &'static str {
    D::transfer(&mut tx).await;
    "transferred"
}

async fn compare<D: Bench>(url: &str, rounds: usize, calls: usize) {
    let store = D::open(url).await;
    D::prepare(store.pool()).await;
    store.migrate().await.unwrap();
    let layer = IdempotencyLayer::transactional(store.clone());
    let app: Router = Router::new()
        .route("/layer", post(in_transaction::<D>).layer(layer))
        .route("/alone", post(alone::<D>))
        .with_state(store.pool().clone());

    let mut key = 0;
    let mut figures = Vec::new();
    for round in 0..=rounds {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..calls {
            key += 1;
            // The one that comes first finds the machine in another state than the one that comes second.
            for line in if key % 2 == 0 { [0, 1, 2] } else { [1, 0, 2] } {
                let path = if line == 0 { "/alone" } else { "/layer" };
                times[line].push(ask(&app, path, key).await);
            }
        }
        // The first round warms up.
        if round > 0 {
            figures.push(times.map(median));
        }
    }
    let name = url.split(':').next().unwrap_or_default();
    println!("{name:<24} {:>10} {:>10}", "p50 us", "ratio");
    for (line, name) in ["the transaction alone", "in transaction mode", "replay"].into_iter().enumerate() {
        let each = median(figures.iter().map(|figures| figures[line]).collect());
        let ratio = median(figures.iter().map(|figures| figures[line] / figures[0]).collect());
        println!("{name:<24} {each:>10.1} {ratio:>10.2}");
    }
}

async fn ask(app: &Router, path: &str, key: u64) -> f64 {
    let request = Request::post(path).header("idempotency-key", key.to_string()).body(Body::empty()).unwrap();
    let began = Instant::now();
    let response = app.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
    response.into_body().collect().await.unwrap();
    micros(began.elapsed())
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
