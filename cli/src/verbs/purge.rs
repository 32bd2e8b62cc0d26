//! `purge`: expired records are removed, a batch at a time. Ctrl-C ends it between two batches.

use serde_json::json;
use tokio::signal::ctrl_c;
use tower_idempotency::store::StoreAdmin;

use crate::{
    agreement,
    arguments::Purge,
    connected::{Connected, on_sql},
    failure::Failure,
    progress::Progress,
    show::{Answer, count},
};

use super::Context;

/// How many records are removed between two looks at Ctrl-C. The store takes fifty at a time.
const BATCH: u64 = 500;

/// What is said of Redis, if it were asked.
const NO_TABLES: &str = "Redis has no tables, and removes expired records by itself";

pub(super) async fn run(context: &Context, purge: &Purge) -> Result<Answer, Failure> {
    if matches!(context.connected, Connected::Redis(_)) {
        let answer = json!({ "purged": 0, "complete": true });
        return Ok(Answer::new("nothing to do: Redis removes expired records by itself", answer));
    }
    let limit = purge.limit.unwrap_or(u64::MAX);
    let bound = purge.limit.map_or(String::new(), |limit| format!(", at most {limit}"));
    let (expired, whose) = backlog(context, purge).await?;
    agreement::ask(
        &format!("would remove {} {whose}{bound}; no live record is touched", count(expired, "expired record")),
        purge.agreement.yes,
    )?;
    let progress = Progress::new("removed", "expired records", context.json);
    let interrupted = ctrl_c();
    tokio::pin!(interrupted);
    let (mut removed, mut complete) = (0, false);
    while removed < limit && !complete {
        let wanted = BATCH.min(limit - removed);
        let batch = batch(context, purge, usize::try_from(wanted).unwrap_or(usize::MAX));
        tokio::pin!(batch);
        let (gone, stopped) = tokio::select! {
            gone = &mut batch => (gone?, false),
            // The batch is small: it ends, and is counted.
            _ = &mut interrupted => (batch.await?, true),
        };
        removed += gone;
        progress.add(gone);
        complete = gone < wanted;
        if stopped && !complete {
            drop(progress);
            let told = count(removed, "expired record");
            return Err(Failure::Interrupted(format!("ended by Ctrl-C: {told} removed, the others are still there")));
        }
    }
    drop(progress);
    let text = format!("removed {}", count(removed, "expired record"));
    Ok(Answer::new(text, json!({ "purged": removed, "complete": complete })))
}

/// Returns how many records have expired, and whose they are.
async fn backlog(context: &Context, purge: &Purge) -> Result<(u64, &'static str), Failure> {
    on_sql!(&context.connected, NO_TABLES, store => {
        let expired = store.expired().await?;
        Ok(if purge.only_namespace {
            (expired.namespace, "of the namespace")
        } else {
            (expired.all, "of all namespaces in the table")
        })
    })
}

/// Removes some of them.
async fn batch(context: &Context, purge: &Purge, limit: usize) -> Result<u64, Failure> {
    on_sql!(&context.connected, NO_TABLES, store => {
        Ok(if purge.only_namespace { store.purge_namespace(limit).await? } else { store.purge(limit).await? })
    })
}
