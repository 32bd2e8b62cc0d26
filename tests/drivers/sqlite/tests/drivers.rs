//! A database crate on SQLite that is not the library's own.

#[path = "../../../sql/folder.rs"]
mod folder;
#[path = "../../common/steps.rs"]
mod steps;

use std::time::Duration;

use rusqlite::{ToSql, params_from_iter};
use tower_idempotency::{
    SqliteStore,
    sql::{SqlStatement, SqlValue},
};

use self::{
    folder::Folder,
    steps::{Driver, a_lost_claim_is_told, child, killed_between_every_two_steps},
};

struct Rusqlite(rusqlite::Connection);

impl Driver for Rusqlite {
    async fn connect(place: &str) -> Self {
        let connection = rusqlite::Connection::open(place).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        Self(connection)
    }

    async fn say(&mut self, text: &str) {
        // A writer that has to wait does so before it has read.
        let text = if text == "BEGIN" { "BEGIN IMMEDIATE" } else { text };
        self.0.execute_batch(text).unwrap();
    }

    async fn execute(&mut self, statement: &SqlStatement) -> u64 {
        let values = statement.values.iter().map(|value| match value {
            SqlValue::Int(number) => number as &dyn ToSql,
            SqlValue::Bool(flag) => flag,
            SqlValue::Text(text) => text,
            SqlValue::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        });
        self.0.execute(&statement.text, params_from_iter(values)).unwrap() as u64
    }

    async fn count(&mut self, text: &str) -> i64 {
        self.0.query_row(text, [], |row| row.get(0)).unwrap()
    }
}

async fn store(place: &str) -> SqliteStore {
    SqliteStore::builder().busy_timeout(Duration::from_secs(20)).open(place).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_effect() {
    let folder = Folder::quick();
    let place = folder.path().join("records.db").display().to_string();
    let store = store(&place).await;
    killed_between_every_two_steps::<Rusqlite, _>(&place, "process", &store).await;
    a_lost_claim_is_told::<Rusqlite, _>(&place, &store).await;
}

/// It is what the processes of the test above run.
#[tokio::test(flavor = "multi_thread")]
async fn process() {
    child::<Rusqlite, _>(async |place| store(place).await).await;
}
