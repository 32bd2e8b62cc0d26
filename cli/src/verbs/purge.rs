//! `purge`: expired records are removed, a batch at a time. Ctrl-C ends it between two batches.

use serde_json::json;
use tokio::signal::ctrl_c;

use crate::{
    agreement,
    arguments::Purge,
    connected::Connected,
    failure::Failure,
    progress::Progress,
    show::{Answer, count},
};

use super::Context;

/// How many records are removed between two looks at Ctrl-C. The store takes fifty at a time.
const BATCH: u64 = 500;

pub(super) async fn run(context: &Context, purge: &Purge) -> Result<Answer, Failure> {
    if matches!(context.connected, Connected::Redis(_)) {
        let answer = json!({ "purged": 0, "complete": true });
        return Ok(Answer::new("nothing to do: Redis removes expired records by itself", answer));
    }
    let limit = purge.limit.unwrap_or(u64::MAX);
    let bound = purge.limit.map_or(String::new(), |limit| format!(", at most {limit}"));
    agreement::ask(
        &format!("would remove expired records of all namespaces in the table{bound}; no live record is touched"),
        purge.agreement.yes,
    )?;
    let progress = Progress::new("removed", "expired records", context.json);
    let interrupted = ctrl_c();
    tokio::pin!(interrupted);
    let (mut removed, mut complete) = (0, false);
    while removed < limit && !complete {
        let wanted = BATCH.min(limit - removed);
        let batch = context.connected.admin().purge(usize::try_from(wanted).unwrap_or(usize::MAX));
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
