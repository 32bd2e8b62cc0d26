//! `settle`: an abandoned record answers its duplicates from now on.

use std::fs;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response};
use tower_idempotency::{
    reconcile::Payload,
    store::{Claimant, Record, RecordKey, Seal, Settlement},
};

use crate::{
    agreement,
    arguments::Settle,
    failure::Failure,
    show::{Answer, plain, record, time},
    subject,
};

use super::{Context, ended};

pub(super) async fn run(context: &Context, settle: &Settle) -> Result<Answer, Failure> {
    let (payload, what) = payload(settle)?;
    let store = context.connected.admin();
    let (key, found) = subject::find(store, &settle.subject, context.json).await?;
    check_abandoned(&found)?;
    if let (Seal::Closed(sealing_key), false) = (found.note_seal(), settle.tombstone) {
        return Err(Failure::Refused(format!(
            "what this application keeps is sealed (with the key {sealing_key}), and it refuses an answer that is not: \
             settle with --tombstone, or let a `Reconciler` of the application settle it"
        )));
    }
    let keep = time::duration(settle.keep);
    agreement::ask(&format!("would settle {} with {what}, for {keep}", name(&key, &found)), settle.agreement.yes)?;
    let settlement = Settlement::new(Claimant::random(), payload.into(), settle.keep);
    let finished = store.settle_as(&key, found.claimant, &settlement).await?;
    ended(context, &key, finished, "settled").await
}

/// Returns an error unless the record is abandoned.
pub(super) fn check_abandoned(found: &Record) -> Result<(), Failure> {
    let why = match record::state(found) {
        "abandoned" => return Ok(()),
        "running" => format!(
            "the record is running, and its lease has {} left: only an abandoned record can be ended from outside",
            time::duration(found.lease_left)
        ),
        state => format!("the record is {state}: only an abandoned record can be ended from outside"),
    };
    Err(Failure::Refused(why))
}

/// Returns the name of a record for a question.
pub(super) fn name(key: &RecordKey, found: &Record) -> String {
    let scope = key.scope().map_or(String::new(), |scope| format!(", scope {}", plain(scope)));
    let key = format!("{} (route {}{scope})", plain(key.key()), plain(key.route()));
    format!("the {} record {key}, attempt {}", record::state(found), found.attempt)
}

/// Returns what the record is settled with, and its name.
fn payload(settle: &Settle) -> Result<(Payload, String), Failure> {
    if settle.done {
        return Ok((Payload::done(), "the outcome of a message that was handled".into()));
    }
    if settle.failed {
        return Ok((Payload::failed(), "a failure that is final".into()));
    }
    if let Some(value) = &settle.value {
        let wrong = |error: serde_json::Error| Failure::Usage(format!("--value: {error}"));
        let value: serde_json::Value = serde_json::from_str(value).map_err(wrong)?;
        return Ok((Payload::value(&value).map_err(wrong)?, format!("the value {value}")));
    }
    match settle.response {
        Some(status) => Ok((response(settle, status)?, format!("an HTTP answer {status}"))),
        None => Ok((Payload::tombstone(), "a tombstone".into())),
    }
}

fn response(settle: &Settle, status: u16) -> Result<Payload, Failure> {
    let body = match &settle.body_file {
        Some(file) => {
            fs::read(file).map_err(|error| Failure::Usage(format!("--body-file {}: {error}", file.display())))?.into()
        }
        None => Bytes::new(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().map_err(|_| Failure::Usage("--response: no status".into()))?;
    for header in &settle.headers {
        let wrong = || Failure::Usage(format!("--header: `{}` is not `NAME: VALUE`", plain(header)));
        let (name, value) = header.split_once(':').ok_or_else(wrong)?;
        let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
        response.headers_mut().append(name, value);
    }
    Ok(Payload::response(&response))
}
