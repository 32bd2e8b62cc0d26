//! On SQLite.

use sqlx::Sqlite;

use super::{process::Process, sessions, what_holds_everywhere};
use crate::database::TestDatabase;

what_holds_everywhere!(Sqlite);

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
    sessions::a_reset_statement::<Sqlite>(SET, LOOK, RESET).await;
}
