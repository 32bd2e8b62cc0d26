//! `purge` and `migrate`.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor, Pool};
use tower_idempotency::{
    sql::{SqlDatabase, SqlStore},
    store::Settlement,
};

use crate::stand::{HOUR, Stand, key};

pub(crate) async fn purging(stand: &Stand) {
    for number in 0..120 {
        let key = key(&number.to_string());
        let claim = stand.run(&key).await;
        let keep = if number < 20 { HOUR } else { Duration::from_millis(1) };
        stand.store.settle(&key, &Settlement::new(claim.claimant, None, keep)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let asked = stand.tool(&["purge"]);
    assert!(asked.code == 4 && asked.error.contains("100 expired records of all namespaces"), "{asked:?}");
    let other = stand.json(&["purge", "--only-namespace", "--namespace", "another", "--yes"]);
    assert_eq!(other, serde_json::json!({ "purged": 0, "complete": true }));
    let own = stand.json(&["purge", "--only-namespace", "--limit", "10", "--yes"]);
    assert_eq!(own, serde_json::json!({ "purged": 10, "complete": false }));
    let some = stand.json(&["purge", "--limit", "30", "--yes"]);
    assert_eq!(some, serde_json::json!({ "purged": 30, "complete": false }));
    let rest = stand.json(&["purge", "--yes"]);
    assert_eq!(rest, serde_json::json!({ "purged": 60, "complete": true }));
    assert_eq!(stand.json(&["stats"])["settled"], 20);
    assert_eq!(stand.tool(&["purge", "--yes"]).output, "removed 0 expired records\n");
}

pub(crate) async fn migrating<D: SqlDatabase>(stand: &Stand, store: &SqlStore<D>, drop_index: &str)
where
    for<'c> &'c Pool<D>: Executor<'c, Database = D>,
{
    // The default table is complete.
    let none = serde_json::json!({ "schema_version": 1, "changes": [], "applied": false });
    assert_eq!(stand.json(&["migrate"]), none);

    let missing = stand.tool(&["stats", "--table", "other"]);
    assert!(missing.code == 1 && missing.error.contains("migrate"), "{missing:?}");
    let changes = |arguments: &[&str]| {
        let told = stand.json(&[&["migrate", "--table", "other"], arguments].concat());
        (told["changes"].clone(), told["applied"] == true)
    };
    let create = serde_json::json!(["create the table other"]);
    assert_eq!(changes(&["--dry-run"]), (create.clone(), false));
    let asked = stand.tool(&["migrate", "--table", "other"]);
    assert!(asked.code == 4 && asked.error.contains("create the table other"), "{asked:?}");
    assert_eq!(changes(&["--yes"]), (create, true));
    assert_eq!(stand.json(&["stats", "--table", "other"])["settled"], 0);

    store.pool().execute(sqlx::raw_sql(AssertSqlSafe(drop_index.to_owned()))).await.unwrap();
    let (told, _) = changes(&["--dry-run"]);
    assert!(told[0].as_str().unwrap().starts_with("create the index other_due on other ("), "{told}");
    assert!(changes(&["--yes"]).1);
    assert_eq!(changes(&["--dry-run"]).0, serde_json::json!([]));
}

pub(crate) fn redis_has_none(stand: &Stand) {
    let purged = stand.json(&["purge"]);
    assert_eq!(purged, serde_json::json!({ "purged": 0, "complete": true }));
    for verb in [&["migrate"][..], &["outbox", "list"], &["stats", "--table", "other"]] {
        let refused = stand.tool(verb);
        assert!(refused.code == 2 && refused.error.contains("Redis has no"), "{refused:?}");
    }
}
