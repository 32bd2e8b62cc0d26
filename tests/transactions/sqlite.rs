//! On SQLite.

use std::{sync::Arc, time::Duration};

use sqlx::{
    Pool, Sqlite,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use tower_idempotency::sql::SqlStoreBuilder;

use crate::{
    folder::Folder,
    lab::{Lab, Process, same_for_lab},
    sessions, what_holds_everywhere,
};

impl Lab for Sqlite {
    type Place = Folder;

    async fn place() -> Arc<Folder> {
        Arc::new(Folder::quick())
    }

    fn url(place: &Folder) -> String {
        place.path().join("shop.db").display().to_string()
    }

    async fn connect(url: &str, connections: u32) -> Pool<Sqlite> {
        let options = SqliteConnectOptions::new()
            .filename(url)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_millis(500));
        SqlitePoolOptions::new().max_connections(connections).connect_with(options).await.unwrap()
    }

    same_for_lab!();
}

what_holds_everywhere!(Sqlite);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment() {
    crate::crashes::killed_at_any_moment::<Sqlite>(1).await;
}

/// There is one writer: what another process has not committed cannot be seen, and cannot be waited out.
#[tokio::test]
async fn a_duplicate_from_another_process_finds_the_file_locked() {
    let place = Sqlite::place().await;
    let (one, other) = (Process::<Sqlite>::start(&place).await, Process::<Sqlite>::start(&place).await);
    let first = one.spawn("a", "insert;gate");
    one.started().await;
    other.post("a", "insert").await.is_problem(503, "store-unavailable");
    other.post("b", "insert").await.is_problem(503, "store-unavailable");
    one.go_on();
    first.await.unwrap().is(201);
    assert!(other.post("a", "insert").await.is(201).replayed);
    other.is_as_new("b").await;
}

const SET: &str = "PRAGMA recursive_triggers = ON";
/// The smallest number has no absolute value.
const LOOK: &str = "SELECT ABS(CASE recursive_triggers WHEN 1 THEN -9223372036854775807 - 1 ELSE 0 END) \
                    FROM pragma_recursive_triggers";
const RESET: &str = "PRAGMA recursive_triggers = OFF";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_of_the_pool_run() {
    sessions::hooks_of_the_pool_run::<Sqlite>(SET, LOOK, RESET).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_statement() {
    let connect = async |builder: SqlStoreBuilder<Sqlite>, path: String| builder.open(&path).await.unwrap();
    sessions::a_reset_statement(connect, SET, LOOK, RESET).await;
}

#[cfg(feature = "tracing")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_waits_asks_as_one() {
    crate::races::a_crowd_that_waits_asks_as_one::<Sqlite>().await;
}

#[cfg(feature = "tracing")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counting_costs_one_statement_of_a_failure() {
    crate::elsewhere::counting_costs_one_statement_of_a_failure::<Sqlite>().await;
}
