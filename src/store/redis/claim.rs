//! Issue and claim.
//!
//! A claim sends the record that it would like to have with `SET NX GET PX`: the answer is nothing, and the key is
//! claimed, or the record that exists. `judge` decides about that record in this process; a takeover is a script that
//! compares what was seen, so that a decision on an outdated record has no effect. If the comparison fails, the claim
//! begins again.
//!
//! A running record is read a second time together with its `PTTL`, since its lease counts. Both are read in one
//! script: between two commands the record could be settled, and would seem to have lapsed.
//!
//! A server that refuses writes still answers duplicates: the record is read, and only a grant is refused.
//!
//! | what is found | what follows |
//! | --- | --- |
//! | nothing | granted |
//! | settled, another content, another caller | the answer, from the same command |
//! | running | read again with its times; then running, or a takeover |
//! | issued, released | a takeover, which compares state, claimant and attempt |
//! | a later version | incompatible |
//! | something else | an error of the kind *corrupt* |
//!
//! A claim that must find an issued record (a token) never sends `SET`, since that would create one.

use redis::{Cmd, Value};

use crate::{
    store::{Claimed, Granted, Issued},
    value::{Claim, Issue, RecordKey, StoreError, StoreErrorKind, Verdict, judge},
};

use super::{
    RedisStore,
    connection::{RetryOnDisconnect, said},
    error::CommandError,
    record::{HEAD, NewRecord, Stored, UNTOLD, Unreadable, lease_and_span, runs},
    scripts::{READ, ROOM, TAKEOVER},
};

/// What a claim has found.
///
/// The three answers are kept apart, since a refused write still permits a replay.
enum Look {
    /// Nothing; the record now belongs to the claim.
    Claimed,
    /// A record, or none if the claim must not create one.
    Found(Option<Found>),
    /// The same, on a server that accepts no writes.
    Refused(Option<Found>, CommandError),
}

/// The bytes of a record and its times, all of one moment.
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    /// The result of `PTTL`.
    pub(super) left: i64,
    /// The result of `PEXPIRETIME`.
    pub(super) expires: i64,
}

impl Found {
    /// Reads the answer of a script that returns what it found.
    pub(super) fn read(answer: Value) -> Result<Option<Self>, CommandError> {
        let Value::Array(answers) = answer else {
            return if answer == Value::Nil { Ok(None) } else { Err(CommandError::Odd) };
        };
        let [bytes, left, expires] = <[Value; 3]>::try_from(answers).map_err(|_| CommandError::Odd)?;
        let (left, expires) = (whole(left)?, whole(expires)?);
        match said(bytes)? {
            Value::BulkString(bytes) => Ok(Some(Self { bytes, left, expires })),
            Value::Nil => Ok(None),
            _ => Err(CommandError::Odd),
        }
    }

    /// Creates it from the bytes alone, if the times were not queried.
    fn untold(bytes: Vec<u8>) -> Self {
        Self { bytes, left: UNTOLD, expires: UNTOLD }
    }
}

impl RedisStore {
    /// Issues a token: writes its record unless its name is taken.
    pub(super) async fn put_issued(&self, key: &RecordKey, issue: &Issue) -> Result<Issued, StoreError> {
        let (name, draft) = (self.space.name(key), NewRecord::issued(issue));
        let mut command = redis::cmd(if draft.span == 0 { "EXISTS" } else { "SET" });
        command.arg(name);
        if draft.span > 0 {
            command.arg(draft.whole()).arg("NX").arg("PX").arg(draft.span);
        }
        match self.line().command(&command, RetryOnDisconnect::No).await? {
            Value::Okay | Value::Int(0) => Ok(Issued::Done),
            Value::Nil | Value::Int(_) => Ok(Issued::Exists),
            _ => Err(CommandError::Odd.into()),
        }
    }

    /// Claims a key. It takes one round trip if the key is free or settled, two if a record is running or was released,
    /// three if it has lapsed.
    ///
    /// It begins again whenever the record has changed between its read and the takeover. Each round is caused by
    /// somebody else's progress, so the loop needs no bound of its own; the layer's store timeout ends it.
    pub(super) async fn try_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Claimed, StoreError> {
        let name = self.space.name(key);
        self.fits(&name, 2 * HEAD + claim.note.len()).await?;
        loop {
            let (found, refusal) = match self.look(&name, claim).await? {
                Look::Claimed => return Ok(Claimed::Granted(Granted::first(claim))),
                Look::Found(found) => (found, None),
                Look::Refused(found, trouble) => (found, Some(trouble)),
            };
            let stored = match found.map(|found| Stored::read(found.bytes, found.left)).transpose() {
                Ok(stored) => stored,
                // Whatever a record of a later version means, the key is not free and the record does not match.
                Err(Unreadable::Newer) => return Ok(Claimed::Incompatible),
                Err(Unreadable::Torn) => return Err(torn()),
            };
            let verdict =
                judge(stored.as_ref().map(Stored::head).as_ref(), claim, stored.as_ref().map_or(0, Stored::age));
            if let Verdict::Grant(granted) = &verdict {
                if let Some(trouble) = refusal {
                    return Err(trouble.into());
                }
                let granted = match &stored {
                    Some(stored) => self.take_over(&name, claim, stored, granted).await?,
                    None => lease_and_span(claim).1 == 0,
                };
                if !granted {
                    continue;
                }
            }
            return Ok(Claimed::from_verdict(verdict, || stored.and_then(|stored| stored.payload())));
        }
    }

    /// Claims the key, or reads its record, in one command: `SET NX GET`. A record's age matters only while it runs, so
    /// only then is it queried: a first request and a replay take this one command, without an unused `PTTL`.
    async fn look(&self, name: &[u8], claim: &Claim) -> Result<Look, CommandError> {
        let draft = NewRecord::running(claim, &Granted::first(claim), None);
        // A claim that needs an issued record must not create one, and a claim without a lifetime leaves no record.
        if claim.issued.is_some() || draft.span == 0 {
            return self.peek(name).await.map(Look::Found);
        }
        let whole = draft.whole();
        let mut command = Cmd::with_capacity(7, name.len() + whole.len() + ROOM);
        command.arg("SET").arg(name).arg(whole).arg("NX").arg("GET").arg("PX").arg(draft.span);
        match self.line().command(&command, RetryOnDisconnect::Yes).await {
            Ok(Value::Nil) => Ok(Look::Claimed),
            Ok(answer) => self.with_times(name, answer).await.map(Look::Found),
            Err(trouble) if trouble.refuses_writes() => Ok(Look::Refused(self.peek(name).await?, trouble)),
            Err(trouble) => Err(trouble),
        }
    }

    /// Reads a record without claiming it.
    async fn peek(&self, name: &[u8]) -> Result<Option<Found>, CommandError> {
        let answer = self.line().command(redis::cmd("GET").arg(name), RetryOnDisconnect::Yes).await?;
        self.with_times(name, answer).await
    }

    /// Returns what was found, read once more with its times if it is running.
    ///
    /// Both are read in one atomic step: a record that is settled between two steps would seem to have lapsed.
    async fn with_times(&self, name: &[u8], answer: Value) -> Result<Option<Found>, CommandError> {
        match answer {
            Value::BulkString(bytes) if runs(&bytes) => self.read(name).await,
            Value::BulkString(bytes) => Ok(Some(Found::untold(bytes))),
            Value::Nil => Ok(None),
            _ => Err(CommandError::Odd),
        }
    }

    /// Reads a record and its times in one atomic step.
    pub(super) async fn read(&self, name: &[u8]) -> Result<Option<Found>, CommandError> {
        Found::read(self.line().script(&READ, name, &[], RetryOnDisconnect::Yes).await?)
    }

    /// Takes the record over, if it is still as it was seen; returns whether it was.
    ///
    /// `false` means that another claim was faster, or that the record has been settled; the caller begins again.
    async fn take_over(
        &self,
        name: &[u8],
        claim: &Claim,
        seen: &Stored,
        granted: &Granted,
    ) -> Result<bool, CommandError> {
        if seen.has_expired() {
            return Ok(false);
        }
        let draft = NewRecord::running(claim, granted, seen.binding.as_ref());
        let span = draft.span.to_string();
        let arguments: [&[u8]; 6] =
            [seen.seen(), &draft.front, &draft.times, &draft.rare, span.as_bytes(), &self.channel(name)];
        match self.line().script(&TAKEOVER, name, &arguments, RetryOnDisconnect::Yes).await? {
            Value::Int(1) => Ok(true),
            Value::Int(0) => Ok(false),
            _ => Err(CommandError::Odd),
        }
    }
}

/// Returns the error for a string that is not a record.
pub(super) fn torn() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "what has the name of a record is none").without_effect()
}

/// Returns the number of an answer that must be one.
pub(super) fn whole(value: Value) -> Result<i64, CommandError> {
    match said(value)? {
        Value::Int(number) => Ok(number),
        _ => Err(CommandError::Odd),
    }
}
