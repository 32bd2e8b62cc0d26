//! Settling a large answer without passing it through a script.
//!
//! A script's arguments are copied several times while the server does nothing else. So the answer is first stored
//! under a name of its own, the *draft*, with room for the head in front. The script then writes the head into the
//! draft and renames it to the record. Both commands are sent in one batch. The draft is in the slot of the record, by
//! its tag; it expires after ten seconds, in case the script never arrives.
//!
//! If something prevents this (a permission, a slot that moves), the answer is settled by the ordinary script.
//!
//! | the script answers | meaning |
//! | --- | --- |
//! | 1, 2, a record, nothing | as `settle.lua` |
//! | 3 | there is no draft: settle by the ordinary script |
//! | a string | it has to follow the payload; send the draft again with it |

use redis::{Pipeline, Value};

use crate::{
    store::Finished,
    value::{Claimant, StoreError},
};

use super::{
    RedisStore,
    command::{Argument, command},
    connection::{RetryOnDisconnect, server_reply, slot},
    error::CommandError,
    record::HEAD,
    reply::finished,
    scripts::SETTLE_DRAFT,
};

/// Answers of this many bytes or more are not passed through a script, which copies them several times while the server
/// does nothing else. For smaller ones the additional command costs more than the copies.
pub(super) const LARGE: usize = 2048;

/// No server accepts a longer value, unless `proto-max-bulk-len` is raised; the rest is for the head, and for what
/// follows the answer.
pub(super) const LARGEST: usize = (512 << 20) - (1 << 20);

/// The smallest possible `proto-max-bulk-len`.
const LEAST_LIMIT: usize = 1 << 20;

/// How long a draft may wait for its script, in milliseconds. Both are sent in one batch.
const DRAFT_TTL: u64 = 10_000;

/// The arguments that a settlement passes to its script.
pub(super) struct SettleArguments<'a> {
    pub(super) runner: [u8; 16],
    pub(super) owner: [u8; 16],
    /// `1` if the lease must have lapsed: the end on behalf of another claimant.
    pub(super) lapsed: &'static [u8],
    pub(super) flag: u8,
    pub(super) times: [u8; 20],
    /// The answer.
    pub(super) payload: &'a [u8],
    /// How long the record lives, in milliseconds.
    pub(super) span: u64,
    /// The channel on which the end is published.
    pub(super) channel: &'a [u8],
}

impl RedisStore {
    /// Settles with an answer that the server stores as it receives it and turns into the record. `None` if that cannot
    /// be done here.
    ///
    /// If a token's binding or a note has to follow the answer, a second round trip reads it.
    pub(super) async fn settle_large(
        &self,
        name: Argument<'_>,
        settle: &SettleArguments<'_>,
    ) -> Result<Option<Finished>, StoreError> {
        let mut suffix = Vec::new();
        for _ in 0..2 {
            self.fits(name, HEAD + settle.payload.len() + suffix.len()).await?;
            match self.draft(name, settle, &suffix).await {
                Ok(Value::BulkString(found)) => suffix = found,
                Ok(Value::Int(3)) => return Ok(None),
                Ok(answer) => return finished(answer).map(Some),
                // A user who may settle may lack the permission to write drafts. And in a slot that moves, one of the
                // two names may have moved first.
                Err(error) if error.is_forbidden() || error.is_elsewhere() => return Ok(None),
                Err(error) if error.was_disconnected() && HEAD + settle.payload.len() > LEAST_LIMIT => {
                    return Err(self.too_large(name, settle.payload).await.unwrap_or(error).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Fails if the server does not accept a value of this size. The server is queried before the value is sent: on a
    /// value that is too large it closes the connection, which other callers share, and its error is lost if writing
    /// the rest fails first.
    ///
    /// A user without the right to `GETBIT` gets no check: the value is sent, and a refusal breaks the connection.
    pub(super) async fn fits(&self, name: Argument<'_>, size: usize) -> Result<(), CommandError> {
        if size <= LEAST_LIMIT {
            return Ok(());
        }
        // `GETBIT` accepts every offset that a string may have, even if the string does not exist.
        let command = command([Argument::Bytes(b"GETBIT"), name, Argument::Number(8 * (size as u64 - 1))].into_iter());
        match self.transport().command(&command, RetryOnDisconnect::Yes).await {
            Err(error) if error.is_forbidden() => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Returns the server's error for so large an answer, if that is why it closes the connection, and it could not be
    /// queried before. For several commands in one batch the driver would only report that none was answered.
    async fn too_large(&self, name: Argument<'_>, payload: &[u8]) -> Option<CommandError> {
        let draft = draft_of(name);
        let mut command = redis::cmd("SET");
        command.arg(&draft).arg(payload).arg("PX").arg(DRAFT_TTL);
        match self.transport().command(&command, RetryOnDisconnect::No).await {
            Err(error) if error.is_too_large() => Some(error),
            _ => None,
        }
    }

    /// Sends the draft and its script in one batch, and returns the script's answer.
    async fn draft(
        &self,
        name: Argument<'_>,
        settle: &SettleArguments<'_>,
        suffix: &[u8],
    ) -> Result<Value, CommandError> {
        let draft = draft_of(name);
        let record: [&[u8]; 3] = [&[0; HEAD], settle.payload, suffix];
        let length = record.iter().map(|part| part.len() as u64).sum();
        let [runner, owner, lapsed, times, channel, behind] =
            [&settle.runner[..], &settle.owner, settle.lapsed, &settle.times, settle.channel, suffix]
                .map(Argument::Bytes);
        let [flag, length, span] = [settle.flag.into(), length, settle.span].map(Argument::Number);
        let arguments = [runner, owner, lapsed, flag, times, length, span, channel, behind];
        let [set, draft, expiry] = [&b"SET"[..], &draft, b"PX"].map(Argument::Bytes);
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.add_command(command(
            [set, draft, Argument::Joined(&record), expiry, Argument::Number(DRAFT_TTL)].into_iter(),
        ));
        pipeline.add_command(SETTLE_DRAFT.evalsha(&[name, draft], &arguments));
        let mut answers = self.transport().pipeline(&pipeline, RetryOnDisconnect::Yes).await?;
        match answers.pop().map(server_reply) {
            Some(Err(error)) if error.is_unknown_script() => {
                self.transport().eval(&SETTLE_DRAFT, &[name, draft], &arguments, RetryOnDisconnect::Yes).await
            }
            Some(answer) => answer,
            None => Err(CommandError::UnexpectedReply),
        }
    }
}

/// Returns the name of a draft, which no other call shares.
fn draft_of(name: Argument<'_>) -> Vec<u8> {
    let own = Claimant::random().to_bytes();
    [b"idem{", &slot::tag(&name.to_vec())[..], b"}:draft:", &own].concat()
}
