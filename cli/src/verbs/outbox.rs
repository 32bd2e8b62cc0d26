//! `outbox`: messages that wait, and what can be done about one that is stuck.

use std::time::Duration;

use serde_json::{Value, json};
use tower_idempotency::sql::{
    SqlDatabase, SqlStore,
    outbox::{Outbox, OutboxStats, StagedMessage},
};

use crate::{
    agreement,
    arguments::{OutboxList, OutboxMessage, OutboxVerb},
    connected::on_sql,
    failure::Failure,
    show::{
        Answer, Look, count, plain,
        record::milliseconds,
        table::Table,
        time::{self, duration},
    },
};

use super::Context;

pub(super) async fn run(context: &Context, arguments: &crate::arguments::Outbox) -> Result<Answer, Failure> {
    on_sql!(&context.connected, "Redis has no outbox", store => on(store, context, arguments).await)
}

async fn on<D: SqlDatabase>(
    store: &SqlStore<D>,
    context: &Context,
    arguments: &crate::arguments::Outbox,
) -> Result<Answer, Failure> {
    let outbox = match &arguments.outbox_table {
        Some(table) => {
            store.outbox().table(table).map_err(|error| Failure::Usage(format!("--outbox-table: {error}")))?
        }
        None => store.outbox(),
    };
    match &arguments.verb {
        OutboxVerb::List(list) => show(&outbox, list, context.look).await,
        OutboxVerb::Retry(OutboxMessage { id, .. }) => {
            if outbox.retry(id).await? {
                return Ok(Answer::new("the message is due now", json!({ "retried": true, "id": id })));
            }
            Err(absent(id))
        }
        OutboxVerb::Discard(message) => discard(&outbox, message).await,
    }
}

async fn show<D: SqlDatabase>(outbox: &Outbox<D>, list: &OutboxList, look: Look) -> Result<Answer, Failure> {
    let stats = outbox.stats().await?;
    let (age, limit) = (list.older_than.unwrap_or(Duration::ZERO), usize::from(list.limit));
    let messages = outbox.unsent_after(list.after.unwrap_or(0), age, limit).await?;
    let next = messages.last().filter(|_| messages.len() == limit).map(StagedMessage::position);
    let mut text = String::new();
    if !messages.is_empty() {
        let mut table = Table::new(&["ID", "TOPIC", "KEY", "TRIES", "STAGED (UTC)", "BYTES"]);
        for StagedMessage { message, attempt, staged, .. } in &messages {
            table.row([
                message.id.clone(),
                message.topic.clone(),
                message.key.clone().unwrap_or_else(|| "-".into()),
                attempt.to_string(),
                time::moment(*staged),
                message.payload.len().to_string(),
            ]);
        }
        text = table.render(look);
    }
    text += &look.faint(&summary(&stats, next));
    let shown: Vec<_> = messages.iter().map(message_json).collect();
    Ok(Answer::new(text, json!({ "messages": shown, "next": next, "stats": stats_json(&stats) })))
}

/// Returns the last line of a list.
fn summary(stats: &OutboxStats, next: Option<i64>) -> String {
    let counted = format!("{} unsent, {} of them failing", count(stats.unsent, "message"), stats.failing);
    let oldest = stats.oldest.map(|oldest| format!("the oldest has waited {}", duration(oldest)));
    let next = next.map(|next| format!("go on with --after {next}"));
    [Some(counted), oldest, next].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

pub(super) fn stats_json(stats: &OutboxStats) -> Value {
    json!({ "unsent": stats.unsent, "failing": stats.failing, "oldest_ms": stats.oldest.map(milliseconds) })
}

/// Returns a message without its content and its headers, which may be secret.
fn message_json(staged: &StagedMessage) -> Value {
    let StagedMessage { message, attempt, .. } = staged;
    json!({
        "id": message.id,
        "topic": message.topic,
        "key": message.key,
        "tries": attempt,
        "staged": time::rfc3339(staged.staged),
        "bytes": message.payload.len(),
        "position": staged.position(),
    })
}

async fn discard<D: SqlDatabase>(outbox: &Outbox<D>, message: &OutboxMessage) -> Result<Answer, Failure> {
    let id = &message.id;
    agreement::ask(
        &format!("would remove the unsent message {}: it is never sent, and the next of its key goes on", plain(id)),
        message.agreement.yes,
    )?;
    if outbox.discard(id).await? {
        return Ok(Answer::new("the message is removed", json!({ "discarded": true, "id": id })));
    }
    Err(absent(id))
}

fn absent(id: &str) -> Failure {
    Failure::NotFound(format!(
        "no message {} waits: it is sent, or unknown, or a relay is sending it at the moment",
        plain(id)
    ))
}
