//! `list`: records, a page at a time.

use serde_json::json;
use tower_idempotency::store::{Cursor, Entry, Filter, State};

use crate::{
    arguments::List,
    failure::Failure,
    show::{Answer, count, hex, record, unhex},
};

use super::Context;

pub(super) async fn run(context: &Context, list: &List) -> Result<Answer, Failure> {
    let (entries, next) = page(context, list).await?;
    let records: Vec<_> = entries.iter().map(|entry| record::json(&entry.key, &entry.record)).collect();
    let next = next.map(|cursor| hex(cursor.as_bytes()));
    let mut text = if entries.is_empty() { String::new() } else { record::list(&entries, context.look) };
    text += &match &next {
        Some(next) => {
            context.look.faint(&format!("{} so far; go on with --after {next}", count(entries.len() as u64, "record")))
        }
        None => context.look.faint(&count(entries.len() as u64, "record")),
    };
    Ok(Answer::new(text, json!({ "records": records, "next": next })))
}

/// Reads pages of the store until there are enough records.
async fn page(context: &Context, list: &List) -> Result<(Vec<Entry>, Option<Cursor>), Failure> {
    let wrong = || Failure::Usage("--after: it is the `next` of no page".into());
    let mut after =
        list.after.as_deref().map(|text| unhex(text).ok_or_else(wrong)).transpose()?.map(Cursor::from_bytes);
    let (filter, limit) = (filter(list), usize::from(list.limit));
    let all = !list.running && list.route.is_none() && list.scope.is_none() && list.lapsed_for.is_none();
    let mut entries = Vec::new();
    loop {
        // If some are left out here, small pages would be many.
        let wanted = if all { limit - entries.len() } else { limit };
        let page = context.connected.admin().list(filter, after, wanted).await?;
        entries.extend(page.entries.into_iter().filter(|entry| is_wanted(list, entry)));
        after = page.next;
        if after.is_none() || entries.len() >= limit {
            return Ok((entries, after));
        }
    }
}

/// Returns what the store itself can look for.
fn filter(list: &List) -> Filter {
    match list {
        List { abandoned: true, .. } => Filter::Abandoned,
        List { running: true, .. } => Filter::State(State::Running),
        List { settled: true, .. } => Filter::State(State::Settled),
        List { released: true, .. } => Filter::State(State::Released),
        List { issued: true, .. } => Filter::State(State::Issued),
        _ => Filter::All,
    }
}

fn is_wanted(list: &List, entry: &Entry) -> bool {
    let Entry { key, record, .. } = entry;
    let is_alive = !list.running || !record.is_abandoned();
    is_alive
        && list.route.as_deref().is_none_or(|route| key.route() == route)
        && list.scope.as_deref().is_none_or(|scope| key.scope() == Some(scope))
        && list.lapsed_for.is_none_or(|least| record.lapsed_for >= least)
}
