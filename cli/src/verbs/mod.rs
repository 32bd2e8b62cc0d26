//! The verbs, one file each.

mod doctor;
mod forget;
mod inspect;
mod list;
mod migrate;
mod outbox;
mod purge;
mod release;
mod settle;
mod stats;

use tower_idempotency::store::{Finished, RecordKey};

use crate::{
    arguments::{Arguments, Verb},
    connected::Connected,
    failure::Failure,
    show::{Answer, Look, record},
    store_url::StoreUrl,
};

/// What the verbs share.
pub(crate) struct Context {
    connected: Connected,
    url: StoreUrl,
    look: Look,
    json: bool,
}

/// Does what the arguments ask for.
pub(crate) async fn run(arguments: Arguments, look: Look) -> Result<Answer, Failure> {
    let Arguments { place, json, verb } = arguments;
    let url = StoreUrl::find(&place)?;
    let creates = matches!(&verb, Verb::Migrate(migrate) if migrate.agreement.yes && !migrate.dry_run);
    if let Verb::Doctor(doctor) = &verb {
        return doctor::run(&url, &place, doctor, look).await.map_err(|failure| failure.map(|text| url.conceal(text)));
    }
    let connected = Connected::open(&url, &place, creates).await?;
    let context = Context { connected, url, look, json };
    let done = match verb {
        Verb::Inspect(subject) => inspect::run(&context, &subject).await,
        Verb::List(list) => list::run(&context, &list).await,
        Verb::Stats => stats::run(&context).await,
        Verb::Settle(settle) => settle::run(&context, &settle).await,
        Verb::Release(release) => release::run(&context, &release).await,
        Verb::Forget(forget) => forget::run(&context, &forget).await,
        Verb::Purge(purge) => purge::run(&context, &purge).await,
        Verb::Migrate(migrate) => migrate::run(&context, &migrate).await,
        Verb::Outbox(outbox) => outbox::run(&context, &outbox).await,
        Verb::Doctor(_) => Err(Failure::Setup("it is answered above".into())),
    };
    done.map_err(|failure| failure.map(|text| context.url.conceal(text)))
}

/// Returns the answer of a verb that has ended a record: the record as it is now.
async fn ended(context: &Context, key: &RecordKey, finished: Finished, word: &str) -> Result<Answer, Failure> {
    let changed = match finished {
        Finished::Done => true,
        Finished::AlreadyDone => false,
        Finished::Refused(Some(now)) => {
            let state = record::state(&now);
            return Err(Failure::Refused(format!(
                "the record has changed meanwhile, and is {state}: nothing was changed"
            )));
        }
        Finished::Refused(None) => return Err(Failure::NotFound("the record is gone meanwhile".into())),
        other => return Err(Failure::Store(format!("an answer of a later version: {other:?}"))),
    };
    // A release that undoes a first claim leaves no record.
    let now = context.connected.admin().inspect(key).await?;
    let shown = now.as_ref().map(|now| record::json(key, now));
    let json = serde_json::json!({ word: changed, "record": shown });
    let details = now.map_or_else(|| "no record is left\n".to_owned(), |now| record::details(key, &now, context.look));
    Ok(Answer::new(format!("{}\n{details}", context.look.good(word)), json))
}
