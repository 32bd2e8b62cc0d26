//! `migrate`: the tables get what they lack, while other processes use them.

use serde_json::json;
use tower_idempotency::sql::{SqlDatabase, SqlStore};

use crate::{agreement, arguments::Migrate, connected::on_sql, failure::Failure, show::Answer};

use super::Context;

pub(super) async fn run(context: &Context, migrate: &Migrate) -> Result<Answer, Failure> {
    on_sql!(&context.connected, "Redis has no tables, and nothing to migrate", store => bring_up(store, migrate).await)
}

async fn bring_up<D: SqlDatabase>(store: &SqlStore<D>, migrate: &Migrate) -> Result<Answer, Failure> {
    let mut changes = store.pending_migrations().await?;
    let outbox = migrate.outbox.then(|| store.outbox());
    if let Some(outbox) = &outbox {
        changes.extend(outbox.pending_migrations().await?);
    }
    let version = SqlStore::<D>::SCHEMA_VERSION;
    let answer = |applied| json!({ "schema_version": version, "changes": changes, "applied": applied });
    if changes.is_empty() {
        return Ok(Answer::new(format!("nothing to do: the schema is complete, at version {version}"), answer(false)));
    }
    let listed = changes.iter().map(|change| format!("  {change}")).collect::<Vec<_>>().join("\n");
    if migrate.dry_run {
        return Ok(Answer::new(format!("would change, to version {version}:\n{listed}"), answer(false)));
    }
    agreement::ask(&format!("would change, to version {version}:\n{listed}"), migrate.agreement.yes)?;
    store.migrate().await?;
    if let Some(outbox) = &outbox {
        outbox.migrate().await?;
    }
    Ok(Answer::new(format!("changed, to version {version}:\n{listed}"), answer(true)))
}
