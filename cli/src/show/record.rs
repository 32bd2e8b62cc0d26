//! A record: as JSON, as a line of a table, and with all that is known of it.

use std::time::Duration;

use serde_json::{Value, json};
use tower_idempotency::store::{Entry, Record, RecordKey, Seal, State};

use super::{
    Look, count, hex, plain,
    table::{Table, pairs},
    time,
};

/// Returns the word for the state. A running record whose lease has lapsed is abandoned.
pub(crate) fn state(record: &Record) -> &'static str {
    match record.state {
        State::Issued => "issued",
        State::Running if record.is_abandoned() => "abandoned",
        State::Running => "running",
        State::Settled => "settled",
        State::Released => "released",
        _ => "unknown",
    }
}

/// Returns a record in the documented shape. It has the length of an answer, and never the answer.
pub(crate) fn json(key: &RecordKey, record: &Record) -> Value {
    json!({
        "id": hex(key.as_bytes()),
        "log_id": key.log_id(),
        "route": key.route(),
        "scope": key.scope(),
        "key": key.key(),
        "state": state(record),
        "attempt": record.attempt,
        "claimant": hex(&record.claimant.to_bytes()),
        "at_most_once": record.at_most_once,
        "takeover": record.takeover,
        "created": time::rfc3339(record.created),
        "settled": record.settled.map(time::rfc3339),
        "lease_ms": milliseconds(record.lease),
        "lease_left_ms": milliseconds(record.lease_left),
        "lapsed_ms": milliseconds(record.lapsed_for),
        "expires_in_ms": milliseconds(record.expires_in),
        "answer": record.payload.as_ref().map(|payload| kept(payload.len(), record.payload_seal())),
        "note": (!record.note.is_empty()).then(|| kept(record.note.len(), record.note_seal())),
        "token": record.binding.as_ref().map(|binding| {
            json!({ "purpose": binding.purpose, "bound_to_principal": binding.principal.is_some() })
        }),
        "trace_id": record.trace.map(|trace| hex(&trace.to_bytes()[..16])),
    })
}

fn kept(bytes: usize, seal: Seal) -> Value {
    json!({ "bytes": bytes, "sealed_with": sealing_key(seal) })
}

fn sealing_key(seal: Seal) -> Option<String> {
    match seal {
        Seal::Closed(id) | Seal::Opened(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Returns a duration in milliseconds, as JSON has it.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns records as a table.
pub(crate) fn list(entries: &[Entry], look: Look) -> String {
    let mut table = Table::new(&["STATE", "ROUTE", "SCOPE", "KEY", "TRY", "CREATED (UTC)", "LEASE", "EXPIRES IN"]);
    for Entry { key, record, .. } in entries {
        table.row([
            state(record).to_owned(),
            key.route().to_owned(),
            key.scope().unwrap_or("-").to_owned(),
            key.key().to_owned(),
            record.attempt.to_string(),
            time::moment(record.created),
            lease(record),
            time::duration(record.expires_in),
        ]);
    }
    table.render(look)
}

/// Returns what is known of the lease of a running record.
fn lease(record: &Record) -> String {
    match record.state {
        State::Running if record.is_abandoned() => format!("lapsed {} ago", time::duration(record.lapsed_for)),
        State::Running => format!("{} left", time::duration(record.lease_left)),
        _ => "-".into(),
    }
}

/// Returns all that is known of a record.
pub(crate) fn details(key: &RecordKey, record: &Record, look: Look) -> String {
    let word = state(record);
    let shown = match word {
        "abandoned" => format!("{}: its {}", look.bad(word), lease_sentence(record)),
        "running" => format!("{}: its {}", look.doubtful(word), lease_sentence(record)),
        _ => look.good(word),
    };
    let mut lines = vec![
        ("route", plain(key.route())),
        ("scope", key.scope().map_or("none".into(), plain)),
        ("key", plain(key.key())),
        ("log id", key.log_id()),
        ("id", hex(key.as_bytes())),
        ("state", shown),
        ("attempt", attempt(record)),
        ("claimant", hex(&record.claimant.to_bytes())),
        ("created", format!("{} UTC", time::moment(record.created))),
    ];
    if let Some(settled) = record.settled {
        lines.push(("settled", format!("{} UTC", time::moment(settled))));
    }
    lines.push(("expires in", time::duration(record.expires_in)));
    lines.push(("answer", answer(record)));
    lines.push((
        "note",
        if record.note.is_empty() { "none".into() } else { size(record.note.len(), record.note_seal()) },
    ));
    if let Some(binding) = &record.binding {
        let bound = if binding.principal.is_some() { ", bound to a principal" } else { "" };
        lines.push(("token", format!("for {}{bound}", plain(&binding.purpose))));
    }
    if let Some(trace) = record.trace {
        lines.push(("trace id", hex(&trace.to_bytes()[..16])));
    }
    pairs(&lines, look) + advice(record)
}

fn lease_sentence(record: &Record) -> String {
    let length = time::duration(record.lease);
    if record.is_abandoned() {
        return format!("lease of {length} lapsed {} ago", time::duration(record.lapsed_for));
    }
    format!("lease of {length} has {} left", time::duration(record.lease_left))
}

fn attempt(record: &Record) -> String {
    let mut text = record.attempt.to_string();
    if record.takeover {
        text += ", by a takeover";
    }
    if record.at_most_once {
        text += ", at most once";
    }
    text
}

fn answer(record: &Record) -> String {
    match (&record.payload, record.state) {
        (Some(payload), _) => size(payload.len(), record.payload_seal()),
        (None, State::Settled) => "none: a tombstone".into(),
        _ => "none".into(),
    }
}

fn size(bytes: usize, seal: Seal) -> String {
    let text = count(u64::try_from(bytes).unwrap_or(u64::MAX), "byte");
    match sealing_key(seal) {
        Some(key) => format!("{text}, sealed with the key {key}"),
        None => text,
    }
}

/// Returns what an operator can do about the record.
fn advice(record: &Record) -> &'static str {
    match state(record) {
        "abandoned" if record.at_most_once => {
            "\nIt does not run again. Find out whether it took effect, then `settle` it, or `release` it if it did not.\n"
        }
        "abandoned" => "\nThe next try takes it over. `settle` it if it took effect, or `release` it if it did not.\n",
        _ => "",
    }
}
