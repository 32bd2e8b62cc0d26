use redis::{Pipeline, Value};

use crate::{
    store::Finished,
    value::{Claimant, StoreError},
};

use super::{
    RedisStore,
    error::CommandError,
    finish::finished,
    line::{RetryOnDisconnect, said},
    record::HEAD,
    scripts::SETTLE_DRAFT,
    slot,
};

/// From how many bytes on an answer is not passed through a script, which copies it several times while the server does
/// nothing else. Up to here the further command costs more than the copies.
pub(super) const LARGE: usize = 2048;

/// More than this no server takes in a piece, unless `proto-max-bulk-len` is raised; the rest is for the head, and for what
/// stands behind the answer.
pub(super) const LARGEST: usize = (512 << 20) - (1 << 20);

/// The least that `proto-max-bulk-len` can be.
const LEAST_LIMIT: usize = 1 << 20;

/// How long a draft may wait for its script, in milliseconds. Both come in one go.
const LIFE: u64 = 10_000;

/// What a settlement tells its script.
pub(super) struct Ending<'a> {
    pub(super) runner: [u8; 16],
    pub(super) owner: [u8; 16],
    pub(super) lapsed: &'static [u8],
    pub(super) flag: &'a [u8],
    pub(super) times: [u8; 20],
    pub(super) payload: &'a [u8],
    pub(super) span: &'a [u8],
    pub(super) channel: &'a [u8],
}

impl RedisStore {
    /// Settles with an answer that becomes a record where it is received. `None` if that cannot be done here.
    ///
    /// If a token's binding or a note has to stand behind the answer, it takes a second trip to learn what it is.
    pub(super) async fn settle_large(&self, name: &[u8], ending: &Ending<'_>) -> Result<Option<Finished>, StoreError> {
        let mut behind = Vec::new();
        for _ in 0..2 {
            self.fits(name, HEAD + ending.payload.len() + behind.len()).await?;
            match self.draft(name, ending, &behind).await {
                Ok(Value::BulkString(rare)) => behind = rare,
                Ok(Value::Int(3)) => return Ok(None),
                Ok(answer) => return finished(answer).map(Some),
                // A user who may settle need not be one who may write drafts.
                // And of two names in a slot that moves, one may have gone ahead.
                Err(trouble) if trouble.is_forbidden() || trouble.is_elsewhere() => return Ok(None),
                Err(trouble) if trouble.was_cut() && HEAD + ending.payload.len() > LEAST_LIMIT => {
                    return Err(self.too_large(name, ending.payload).await.unwrap_or(trouble).into());
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
        Ok(None)
    }

    /// Fails if the server does not take a piece of this size. It is asked before it is sent one: it closes the
    /// connection on a piece that is too large, which others use as well, and what it says is lost if the writing of the
    /// rest fails first.
    pub(super) async fn fits(&self, name: &[u8], size: usize) -> Result<(), CommandError> {
        if size <= LEAST_LIMIT {
            return Ok(());
        }
        // A bit may be asked for wherever a string may have one, and none of the string has to be there.
        let mut command = redis::cmd("GETBIT");
        command.arg(name).arg(8 * (size - 1));
        match self.line().command(&command, RetryOnDisconnect::Yes).await {
            Err(trouble) if trouble.is_forbidden() => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// What the server says to so large an answer, if that is why it closes the connection, and could not be asked before.
    /// Of several commands in one go the driver would tell that none was answered.
    async fn too_large(&self, name: &[u8], payload: &[u8]) -> Option<CommandError> {
        let draft = draft_of(name);
        let mut command = redis::cmd("SET");
        command.arg(&draft).arg(payload).arg("PX").arg(LIFE);
        match self.line().command(&command, RetryOnDisconnect::No).await {
            Err(trouble) if trouble.is_too_large() => Some(trouble),
            _ => None,
        }
    }

    async fn draft(&self, name: &[u8], ending: &Ending<'_>, behind: &[u8]) -> Result<Value, CommandError> {
        let draft = draft_of(name);
        let whole = [&[0; HEAD], ending.payload, behind].concat();
        let length = whole.len().to_string();
        let arguments: [&[u8]; 9] = [
            &ending.runner,
            &ending.owner,
            ending.lapsed,
            ending.flag,
            &ending.times,
            length.as_bytes(),
            ending.span,
            ending.channel,
            behind,
        ];
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.cmd("SET").arg(&draft).arg(whole).arg("PX").arg(LIFE);
        pipeline.add_command(SETTLE_DRAFT.known(&[name, &draft], &arguments));
        let mut answers = self.line().pipeline(&pipeline, RetryOnDisconnect::Yes).await?;
        match answers.pop().map(said) {
            Some(Err(trouble)) if trouble.is_unknown_script() => {
                self.line().teach(&SETTLE_DRAFT, &[name, &draft], &arguments, RetryOnDisconnect::Yes).await
            }
            Some(answer) => answer,
            None => Err(CommandError::Odd),
        }
    }
}

/// Nobody else's draft, nor that of another call with another answer.
fn draft_of(name: &[u8]) -> Vec<u8> {
    let own = Claimant::random().to_bytes();
    [b"idem{", &slot::tag(name)[..], b"}:draft:", &own].concat()
}
