//! What is in the store: counts, the oldest abandoned record, messages that wait.

use std::time::Duration;

use serde_json::{Value, json};
use tower_idempotency::{
    sql::{SqlDatabase, SqlStore},
    store::{Filter, StoreAdmin},
};

use crate::{
    arguments::Doctor,
    connected::Connected,
    failure::Failure,
    show::{count, record::milliseconds, thousands, time::duration},
    verbs::{outbox::stats_json, stats},
};

use super::finding::{Finding, Findings};

/// How many records a page of abandoned ones has.
const PAGE: usize = 500;

/// The parts of the answer in JSON.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) records: Value,
    pub(super) oldest_abandoned: Value,
    pub(super) outbox: Value,
}

pub(super) async fn check(connected: &Connected, doctor: &Doctor, findings: &mut Findings) -> Counts {
    let mut counts = Counts::default();
    if !doctor.without_counts
        && let Err(failure) = count_records(connected.admin(), doctor, findings, &mut counts).await
    {
        findings.add(Finding::unknown("records", failure.to_string()));
    }
    let outbox = match connected {
        Connected::Redis(_) => return counts,
        Connected::Postgres(store) => count_messages(store, doctor, findings).await,
        Connected::MySql(store) => count_messages(store, doctor, findings).await,
        Connected::Sqlite(store) => count_messages(store, doctor, findings).await,
    };
    match outbox {
        Ok(outbox) => counts.outbox = outbox,
        Err(failure) => findings.add(Finding::unknown("outbox", failure.to_string())),
    }
    counts
}

async fn count_records(
    store: &dyn StoreAdmin,
    doctor: &Doctor,
    findings: &mut Findings,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let stats = store.stats().await?;
    counts.records = stats::json(&stats);
    let numbers = [
        ("running", stats.running),
        ("settled", stats.settled),
        ("released", stats.released),
        ("issued", stats.issued),
    ];
    let numbers = numbers.map(|(state, number)| format!("{} {state}", thousands(number)));
    findings.add(Finding::good("records", numbers.join(", ")));
    if stats.abandoned == 0 {
        findings.add(Finding::good("abandoned", "none"));
        return Ok(());
    }
    let oldest = oldest_abandoned(store).await?;
    counts.oldest_abandoned = oldest.map_or(Value::Null, |oldest| milliseconds(oldest).into());
    let oldest = oldest.unwrap_or_default();
    let found = format!("{}, the oldest lapsed {} ago", count(stats.abandoned, "record"), duration(oldest));
    findings.add(if oldest < doctor.patience {
        Finding::good("abandoned", found)
    } else {
        let remedy = "see `list --abandoned`; a `Reconciler` in the application, `settle` or `release` ends them";
        Finding::warning("abandoned", found, remedy)
    });
    Ok(())
}

/// Returns how long ago the oldest abandoned record has lapsed.
async fn oldest_abandoned(store: &dyn StoreAdmin) -> Result<Option<Duration>, Failure> {
    let (mut oldest, mut after) = (None, None);
    loop {
        let page = store.list(Filter::Abandoned, after, PAGE).await?;
        oldest = page.entries.iter().map(|entry| entry.record.lapsed_for).max().max(oldest);
        after = page.next;
        if after.is_none() {
            return Ok(oldest);
        }
    }
}

async fn count_messages<D: SqlDatabase>(
    store: &SqlStore<D>,
    doctor: &Doctor,
    findings: &mut Findings,
) -> Result<Value, Failure> {
    let outbox = match &doctor.outbox_table {
        Some(table) => store.outbox().table(table)?,
        None => store.outbox(),
    };
    let pending = outbox.pending_migrations().await?;
    if pending.iter().any(|change| change.starts_with("create the table")) {
        findings.add(Finding::good("outbox", "there is none"));
        return Ok(Value::Null);
    }
    if !pending.is_empty() {
        let found = format!("incomplete: {}", pending.join("; "));
        findings.add(Finding::critical("outbox", found, "`tower-idempotency migrate --outbox`"));
        return Ok(json!(null));
    }
    let stats = outbox.stats().await?;
    let (oldest, failing) = (stats.oldest.unwrap_or_default(), stats.failing);
    let found = format!(
        "{} unsent, {failing} of them failing; the oldest has waited {}",
        count(stats.unsent, "message"),
        duration(oldest)
    );
    findings.add(if stats.unsent == 0 {
        Finding::good("outbox", "no message waits")
    } else if oldest < doctor.patience {
        Finding::good("outbox", found)
    } else if failing > 0 {
        Finding::warning("outbox", found, "see `outbox list`, and the relay's log for what the broker says")
    } else {
        Finding::warning("outbox", found, "nothing fails, so no relay seems to run: start one")
    });
    Ok(stats_json(&stats))
}
