//! What a database says of itself: the same checks for all, and those of each.

mod mariadb;
mod postgres;
mod sqlite;

use std::time::{Duration, Instant, SystemTime};

use sqlx::{MySqlPool, PgPool, SqlitePool};
use tower_idempotency::sql::{SqlDatabase, SqlStore};

use crate::{connected::Connected, store_url::StoreUrl};

use super::{
    finding::{Finding, Findings},
    redis::{ROUNDS, clock, round_trip},
};

/// A database that is asked for one value, as text.
trait Asked {
    /// Returns the value, or the error as text: the user may not be permitted to ask.
    async fn ask(&self, query: &'static str) -> Result<String, String>;
}

macro_rules! asked {
    ($($pool:ty),*) => {
        $(impl Asked for $pool {
            async fn ask(&self, query: &'static str) -> Result<String, String> {
                sqlx::query_scalar(query).fetch_one(self).await.map_err(|error| error.to_string())
            }
        })*
    };
}
asked!(PgPool, MySqlPool, SqlitePool);

pub(super) async fn check(connected: &Connected, url: &StoreUrl, findings: &mut Findings) {
    match connected {
        Connected::Redis(_) => {}
        Connected::Postgres(store) => {
            round_trips(store.pool(), findings).await;
            postgres::check(store.pool(), url, findings).await;
            schema(store, findings).await;
        }
        Connected::MySql(store) => {
            round_trips(store.pool(), findings).await;
            mariadb::check(store.pool(), url, findings).await;
            schema(store, findings).await;
        }
        Connected::Sqlite(store) => {
            sqlite::check(store.pool(), findings).await;
            schema(store, findings).await;
        }
    }
}

async fn round_trips(pool: &impl Asked, findings: &mut Findings) {
    let mut rounds = Vec::new();
    // The first opens a connection.
    for round in 0..=ROUNDS {
        let began = Instant::now();
        if let Err(error) = pool.ask("SELECT 'x'").await {
            return findings.add(Finding::critical(
                "connection",
                error,
                "the server is connected, and refuses a query",
            ));
        }
        if round > 0 {
            rounds.push(began.elapsed());
        }
    }
    findings.add(round_trip(rounds));
}

/// Compares the clocks; the query returns milliseconds since 1970.
async fn clocks(pool: &impl Asked, query: &'static str, findings: &mut Findings) {
    let asked = SystemTime::now();
    let now = pool.ask(query).await.ok().and_then(|text| text.parse().ok());
    findings.add(clock(now.map(|milliseconds| SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds)), asked));
}

/// Checks that the table and its index are complete.
async fn schema<D: SqlDatabase>(store: &SqlStore<D>, findings: &mut Findings) {
    let version = SqlStore::<D>::SCHEMA_VERSION;
    let remedy = "`tower-idempotency migrate`, which other processes hardly notice";
    findings.add(match store.pending_migrations().await {
        Ok(changes) if changes.is_empty() => {
            let unknown = store.unknown_columns().await.unwrap_or_default();
            if unknown.is_empty() {
                Finding::good("schema", format!("complete, at version {version}"))
            } else {
                let found = format!("newer than version {version}: it also has {}", unknown.join(", "));
                Finding::warning(
                    "schema",
                    found,
                    "use a tool of the version that serves: this one does not know these columns",
                )
            }
        }
        Ok(changes) => {
            let found = format!("incomplete: would {}", changes.join("; "));
            // Without an index it works, and is slow.
            if changes.iter().all(|change| change.starts_with("create the index")) {
                Finding::warning("schema", found, remedy)
            } else {
                Finding::critical("schema", found, remedy)
            }
        }
        Err(error) => {
            Finding::critical("schema", error.to_string(), "compare the table with that of the folder `migrations`")
        }
    });
}
