//! What the SQL stores cost beside the bare statements that they are made of, in one run for each database.
//!
//! ```console
//! $ scripts/with-server postgres cargo bench --all-features --bench sql -- {url}
//! $ scripts/with-server mariadb cargo bench --all-features --bench sql -- {url}
//! $ cargo bench --all-features --bench sql -- sqlite:///var/tmp/bench.db --quick
//! ```
//!
//! The bare statements go over one connection, held all the time, to a table of the same columns and index, with the
//! same values in it and the same durability: an `INSERT` of what a claim leaves, an `UPDATE` to what settling leaves,
//! and a `SELECT` of what a replay has to know. All take turns within a round, since a disk is quicker at one time than
//! at another; a ratio is the median of the rounds' ratios.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::{
    env,
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, Connection, SqlSafeStr, SqlStr};
use tower_idempotency::{
    MySqlStore, PostgresStore, SqliteStore,
    store::{Claim, Claimed, Finished, RecordKey, Settlement, Store},
};

const DAY: Duration = Duration::from_secs(86_400);
const DAY_MS: i64 = 86_400_000;
const ANSWER: [u8; 300] = [b'x'; 300];
const TABLE: &str = "idempotency_bench";

/// What is measured, and what it is compared with.
const LINES: [(&str, Option<&str>); 7] = [
    ("INSERT", None),
    ("claim", Some("INSERT")),
    ("UPDATE", None),
    ("settle", Some("UPDATE")),
    ("SELECT", None),
    ("replay", Some("SELECT")),
    ("first request, whole", Some("INSERT + UPDATE")),
];

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (flags, urls): (Vec<_>, Vec<_>) = env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let (rounds, calls) = if flags.iter().any(|flag| flag == "--quick") { (5, 100) } else { (15, 200) };
    assert!(!urls.is_empty(), "give the URLs of databases; see the beginning of benches/sql.rs");
    for url in &urls {
        let rounds = match url.split(':').next() {
            Some("postgres" | "postgresql") => postgres(url, rounds, calls).await,
            Some("mysql" | "mariadb") => mysql(url, rounds, calls).await,
            Some("sqlite") => sqlite(url, rounds, calls).await,
            _ => panic!("{url} is no database's"),
        };
        report(url.split(':').next().unwrap_or_default(), &rounds);
    }
}

/// The medians of one round, in microseconds, in the order of [`LINES`].
type Round = [f64; LINES.len()];

fn report(name: &str, rounds: &[Round]) {
    let position = |name: &str| LINES.iter().position(|line| line.0 == name).unwrap();
    println!("{name:<24} {:>10} {:>10}", "p50 us", "ratio");
    for (n, (line, beside)) in LINES.iter().enumerate() {
        let each = median(rounds.iter().map(|round| round[n]).collect());
        let Some(beside) = beside else {
            println!("{line:<24} {each:>10.1}");
            continue;
        };
        let bare = |round: &Round| beside.split(" + ").map(|name| round[position(name)]).sum::<f64>();
        let ratio = median(rounds.iter().map(|round| round[n] / bare(round)).collect());
        println!("{line:<24} {each:>10.1} {ratio:>10.2}   x {beside}");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median of some calls' times.
struct Times(Vec<f64>);

impl Times {
    async fn of<T>(&mut self, call: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let answer = call.await;
        self.0.push(began.elapsed().as_secs_f64() * 1e6);
        answer
    }

    fn median(self) -> f64 {
        median(self.0)
    }
}

/// Calls one first, then the other, in turn: the one that comes after a write of another connection is slower.
async fn in_turn(call: usize, bare: impl Future<Output = ()>, ours: impl Future<Output = ()>) {
    if call.is_multiple_of(2) {
        bare.await;
        ours.await;
    } else {
        ours.await;
        bare.await;
    }
}

/// A bare statement with the table's name in it.
fn statement(text: &str) -> SqlStr {
    AssertSqlSafe(text.replace("{table}", TABLE)).into_sql_str()
}

fn record_key() -> (RecordKey, String) {
    let random = u128::from_be_bytes(Claim::new(DAY, DAY).claimant.to_bytes());
    let key = format!("{random:032x}");
    (RecordKey::new("/bench", Some("ann"), &key).unwrap(), key)
}

/// Measures one database. A macro, since each has types of its own.
macro_rules! bench {
    ($name:ident, $store:ty, $connection:ty, [$insert:literal, $update:literal, $select:literal]) => {
        async fn $name(url: &str, rounds: usize, calls: usize) -> Vec<Round> {
            let store = <$store>::builder().table("idempotency_bench_store").unwrap().connect(url).await.unwrap();
            store.migrate().await.unwrap();
            // The bare statements' table is the store's under another name, and their connection set up as the store's.
            let beside = <$store>::builder().table(TABLE).unwrap().connect(url).await.unwrap();
            beside.migrate().await.unwrap();
            let mut held: $connection = beside.pool().acquire().await.unwrap().detach();
            let [insert, update, select] = [$insert, $update, $select].map(statement);

            let mut all = Vec::new();
            // The first round only prepares statements and warms caches.
            for round in 0..=rounds {
                let mut times: [Times; LINES.len()] = std::array::from_fn(|_| Times(Vec::with_capacity(calls)));
                for call in 0..calls {
                    let [inserts, claims, updates, settles, selects, replays, wholes] = &mut times;
                    let (key, name) = record_key();
                    let id = key.as_bytes().to_vec();
                    let claim = Claim::new(DAY, DAY);
                    let now = 1_764_000_000_000_i64;
                    let query = sqlx::query(insert.clone())
                        .bind(&id)
                        .bind("")
                        .bind("/bench")
                        .bind("ann")
                        .bind(&name)
                        .bind(&[1_u8; 16][..])
                        .bind(&[2_u8; 33][..])
                        .bind(&[3_u8; 16][..])
                        .bind(false)
                        .bind(now)
                        .bind(now)
                        .bind(now + DAY_MS)
                        .bind(now + DAY_MS);
                    let bare = async {
                        let done = inserts.of(query.execute(&mut held)).await.unwrap();
                        assert_eq!(done.rows_affected(), 1);
                    };
                    let ours = async {
                        let claimed = claims.of(store.claim(&key, &claim)).await.unwrap();
                        assert!(matches!(claimed, Claimed::Granted(_)));
                    };
                    in_turn(call, bare, ours).await;

                    let query = sqlx::query(update.clone()).bind(&ANSWER[..]).bind(now).bind(now + DAY_MS).bind(&id);
                    let bare = async {
                        let done = updates.of(query.execute(&mut held)).await.unwrap();
                        assert_eq!(done.rows_affected(), 1);
                    };
                    let settlement = Settlement::new(claim.claimant, Some(ANSWER.to_vec().into()), DAY);
                    let ours = async {
                        let settled = settles.of(store.settle(&key, &settlement)).await.unwrap();
                        assert!(matches!(settled, Finished::Done));
                    };
                    in_turn(call, bare, ours).await;

                    let query = sqlx::query(select.clone()).bind(&id);
                    let bare = async {
                        let row = selects.of(query.fetch_one(&mut held)).await.unwrap();
                        assert_eq!(sqlx::Row::len(&row), 13);
                    };
                    let again = Claim::new(DAY, DAY);
                    let ours = async {
                        let replayed = replays.of(store.claim(&key, &again)).await.unwrap();
                        assert!(matches!(replayed, Claimed::Settled(Some(_), _)));
                    };
                    in_turn(call, bare, ours).await;

                    let (key, _) = record_key();
                    wholes
                        .of(async {
                            let claim = Claim::new(DAY, DAY);
                            store.claim(&key, &claim).await.unwrap();
                            let settlement = Settlement::new(claim.claimant, Some(ANSWER.to_vec().into()), DAY);
                            store.settle(&key, &settlement).await.unwrap();
                        })
                        .await;
                }
                if round > 0 {
                    all.push(times.map(Times::median));
                }
            }
            for table in ["idempotency_bench_store", TABLE] {
                sqlx::raw_sql(AssertSqlSafe(format!("DROP TABLE {table}"))).execute(store.pool()).await.unwrap();
            }
            held.close().await.unwrap();
            all
        }
    };
}

bench!(
    postgres,
    PostgresStore,
    sqlx::PgConnection,
    [
        "INSERT INTO {table} (id, namespace, route, scope, record_key, state, attempt, claimant, fingerprint, caller, \
     at_most_once, takeover, created_ms, changed_ms, lease_ends_ms, expires_ms) \
     VALUES ($1, $2, $3, $4, $5, 'running', 1, $6, $7, $8, $9, FALSE, $10, $11, $12, $13)",
        "UPDATE {table} SET state = 'settled', payload = $1, changed_ms = $2, expires_ms = $3 WHERE id = $4",
        "SELECT state, claimant, attempt, fingerprint, caller, at_most_once, takeover, lease_ends_ms, expires_ms, purpose, \
     principal, payload, changed_ms FROM {table} WHERE id = $1"
    ]
);

bench!(
    mysql,
    MySqlStore,
    sqlx::MySqlConnection,
    [
        "INSERT INTO {table} (id, namespace, route, scope, record_key, state, attempt, claimant, fingerprint, caller, \
     at_most_once, takeover, created_ms, changed_ms, lease_ends_ms, expires_ms) \
     VALUES (?, ?, ?, ?, ?, 'running', 1, ?, ?, ?, ?, FALSE, ?, ?, ?, ?)",
        "UPDATE {table} SET state = 'settled', payload = ?, changed_ms = ?, expires_ms = ? WHERE id = ?",
        "SELECT state, claimant, attempt, fingerprint, caller, at_most_once, takeover, lease_ends_ms, expires_ms, purpose, \
     principal, payload, changed_ms FROM {table} WHERE id = ?"
    ]
);

bench!(
    sqlite,
    SqliteStore,
    sqlx::SqliteConnection,
    [
        "INSERT INTO {table} (id, namespace, route, scope, record_key, state, attempt, claimant, fingerprint, caller, \
     at_most_once, takeover, created_ms, changed_ms, lease_ends_ms, expires_ms) \
     VALUES ($1, $2, $3, $4, $5, 'running', 1, $6, $7, $8, $9, FALSE, $10, $11, $12, $13)",
        "UPDATE {table} SET state = 'settled', payload = $1, changed_ms = $2, expires_ms = $3 WHERE id = $4",
        "SELECT state, claimant, attempt, fingerprint, caller, at_most_once, takeover, lease_ends_ms, expires_ms, purpose, \
     principal, payload, changed_ms FROM {table} WHERE id = $1"
    ]
);
