//! `forget`: a record is removed, and its key is free.

use serde_json::json;

use crate::{
    agreement,
    arguments::Forget,
    failure::Failure,
    show::{Answer, record, time},
    subject,
};

use super::{Context, settle::name};

pub(super) async fn run(context: &Context, forget: &Forget) -> Result<Answer, Failure> {
    let store = context.connected.admin();
    let (key, found) = subject::find(store, &forget.subject, context.json).await?;
    let state = record::state(&found);
    if state == "running" && !forget.force {
        return Err(Failure::Refused(format!(
            "the record is running, and its lease has {} left: without it, the next request would run at the same time. \
             --force removes it all the same",
            time::duration(found.lease_left)
        )));
    }
    let then = match state {
        "settled" => "its duplicates are not answered any more: they run",
        "running" => "the next request runs while this one is still running",
        "abandoned" => "the next try runs as the first one, also if this one took effect",
        "issued" => "the token cannot be used any more",
        _ => "the next try runs as the first one",
    };
    agreement::ask(&format!("would remove {}: {then}", name(&key, &found)), forget.agreement.yes)?;
    if !store.forget(&key).await? {
        return Err(Failure::NotFound("the record is gone meanwhile".into()));
    }
    let removed = json!({ "forgotten": true, "record": record::json(&key, &found) });
    Ok(Answer::new(format!("removed {}", name(&key, &found)), removed))
}
