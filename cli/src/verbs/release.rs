//! `release`: the next try of an abandoned record runs.

use tower_idempotency::store::{self, Claimant};

use crate::{agreement, arguments::Release, failure::Failure, show::Answer, subject};

use super::{
    Context, ended,
    settle::{check_abandoned, name},
};

pub(super) async fn run(context: &Context, release: &Release) -> Result<Answer, Failure> {
    let store = context.connected.admin();
    let (key, found) = subject::find(store, &release.subject, context.json).await?;
    check_abandoned(&found)?;
    let then = if release.undo { ", as if this attempt had not begun" } else { "" };
    agreement::ask(
        &format!("would release {}{then}: its next try runs, also if this one took effect", name(&key, &found)),
        release.agreement.yes,
    )?;
    let own = Claimant::random();
    let end =
        if release.undo { store::Release::undo(own, release.keep) } else { store::Release::new(own, release.keep) };
    let finished = store.release_as(&key, found.claimant, &end).await?;
    ended(context, &key, finished, "released").await
}
