//! `inspect`: all that is known of one record.

use crate::{
    arguments::Subject,
    failure::Failure,
    show::{Answer, record},
    subject,
};

use super::Context;

pub(super) async fn run(context: &Context, subject: &Subject) -> Result<Answer, Failure> {
    let (key, found) = subject::find(context.connected.admin(), subject, context.json).await?;
    Ok(Answer::new(record::details(&key, &found, context.look), record::json(&key, &found)))
}
