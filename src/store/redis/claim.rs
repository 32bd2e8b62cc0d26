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

use std::time::Instant;

use redis::Value;

use crate::{
    store::{Claimed, Granted, Issued, support::bytes::DecodeError},
    value::{Claim, Issue, RecordKey, StoreError, Verdict, judge},
};

use super::{
    RedisStore,
    command::{Argument, command},
    connection::RetryOnDisconnect,
    error::CommandError,
    record::{EncodedRecord, HEAD, NewRecord, is_running, lease_and_span},
    reply::{RawRecord, corrupt},
    scripts::{READ, TAKEOVER},
};

/// What a claim has found.
///
/// The three answers are kept apart, since a refused write still permits a replay.
enum Lookup {
    /// Nothing; the record now belongs to the claim.
    Claimed,
    /// A record, or none if the claim must not create one.
    Found(Option<RawRecord>),
    /// The same, on a server that accepts no writes.
    Refused(Option<RawRecord>, CommandError),
}

impl RedisStore {
    /// Issues a token: writes its record unless its name is taken.
    pub(super) async fn issue_record(&self, key: &RecordKey, issue: &Issue) -> Result<Issued, StoreError> {
        let (name, draft) = (self.prefix.parts(key), NewRecord::issued(issue));
        let mut command = redis::cmd(if draft.span == 0 { "EXISTS" } else { "SET" });
        command.arg(Argument::Joined(&name));
        if draft.span > 0 {
            command.arg(Argument::Joined(&draft.parts())).arg("NX").arg("PX").arg(draft.span);
        }
        match self.transport().command(&command, RetryOnDisconnect::No).await? {
            Value::Okay | Value::Int(0) => Ok(Issued::Done),
            Value::Nil | Value::Int(_) => Ok(Issued::Exists),
            _ => Err(CommandError::UnexpectedReply.into()),
        }
    }

    /// Claims a key. It takes one round trip if the key is free or settled, two if a record is running or was released,
    /// three if it has lapsed.
    ///
    /// It begins again whenever the record has changed between its read and the takeover. Each round is caused by
    /// somebody else's progress, so the loop needs no bound of its own; the layer's store timeout ends it.
    pub(super) async fn try_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Claimed, StoreError> {
        let name = self.prefix.parts(key);
        let name = Argument::Joined(&name);
        self.fits(name, 2 * HEAD + claim.note.len()).await?;
        loop {
            let (found, refusal) = match self.claim_or_read(name, claim).await? {
                Lookup::Claimed => return Ok(Claimed::Granted(Granted::first(claim))),
                Lookup::Found(found) => (found, None),
                Lookup::Refused(found, error) => (found, Some(error)),
            };
            let stored = match found.map(|found| EncodedRecord::read(found.bytes, found.left)).transpose() {
                Ok(stored) => stored,
                // Whatever a record of a later version means, the key is not free and the record does not match.
                Err(DecodeError::Newer) => return Ok(Claimed::Incompatible),
                Err(DecodeError::Corrupt) => return Err(corrupt()),
            };
            let verdict = judge(
                stored.as_ref().map(EncodedRecord::head).as_ref(),
                claim,
                stored.as_ref().map_or(0, EncodedRecord::age),
            );
            if let Verdict::Grant(granted) = &verdict {
                if let Some(error) = refusal {
                    return Err(error.into());
                }
                let granted = match &stored {
                    Some(stored) => self.take_over(name, claim, stored, granted).await?,
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
    async fn claim_or_read(&self, name: Argument<'_>, claim: &Claim) -> Result<Lookup, CommandError> {
        let draft = NewRecord::running(claim, &Granted::first(claim), None);
        // A claim that needs an issued record must not create one, and a claim without a lifetime leaves no record.
        if claim.issued.is_some() || draft.span == 0 {
            return self.get(name).await.map(Lookup::Found);
        }
        let parts = draft.parts();
        let [set, only_new, get, expiry] = [&b"SET"[..], b"NX", b"GET", b"PX"].map(Argument::Bytes);
        let arguments = [set, name, Argument::Joined(&parts), only_new, get, expiry, Argument::Number(draft.span)];
        let (command, began) = (command(arguments.into_iter()), Instant::now());
        match self.transport().command(&command, RetryOnDisconnect::Yes).await {
            Ok(Value::Nil) => {
                self.remember_claim(claim.claimant, command, began);
                Ok(Lookup::Claimed)
            }
            Ok(answer) => self.with_times(name, answer).await.map(Lookup::Found),
            Err(error) if error.refuses_writes() => Ok(Lookup::Refused(self.get(name).await?, error)),
            Err(error) => Err(error),
        }
    }

    /// Reads a record without claiming it.
    async fn get(&self, name: Argument<'_>) -> Result<Option<RawRecord>, CommandError> {
        let answer = self
            .transport()
            .command(&command([Argument::Bytes(b"GET"), name].into_iter()), RetryOnDisconnect::Yes)
            .await?;
        self.with_times(name, answer).await
    }

    /// Returns what was found, read once more with its times if it is running.
    ///
    /// Both are read in one atomic step: a record that is settled between two steps would seem to have lapsed.
    async fn with_times(&self, name: Argument<'_>, answer: Value) -> Result<Option<RawRecord>, CommandError> {
        match answer {
            Value::BulkString(bytes) if is_running(&bytes) => self.read(name).await,
            Value::BulkString(bytes) => Ok(Some(RawRecord::without_times(bytes))),
            Value::Nil => Ok(None),
            _ => Err(CommandError::UnexpectedReply),
        }
    }

    /// Reads a record and its times in one atomic step.
    pub(super) async fn read(&self, name: Argument<'_>) -> Result<Option<RawRecord>, CommandError> {
        RawRecord::read(self.transport().script(&READ, name, &[], RetryOnDisconnect::Yes).await?)
    }

    /// Takes the record over, if it is still as it was seen; returns whether it was.
    ///
    /// `false` means that another claim was faster, or that the record has been settled; the caller begins again.
    async fn take_over(
        &self,
        name: Argument<'_>,
        claim: &Claim,
        seen: &EncodedRecord,
        granted: &Granted,
    ) -> Result<bool, CommandError> {
        if seen.has_expired() {
            return Ok(false);
        }
        let draft = NewRecord::running(claim, granted, seen.binding.as_ref());
        let channel = self.channel(name);
        let [seen, prefix, times, suffix, channel] =
            [seen.version_token(), &draft.prefix, &draft.times, &draft.suffix, &channel].map(Argument::Bytes);
        let arguments = [seen, prefix, times, suffix, Argument::Number(draft.span), channel];
        match self.transport().script(&TAKEOVER, name, &arguments, RetryOnDisconnect::Yes).await? {
            Value::Int(1) => Ok(true),
            Value::Int(0) => Ok(false),
            _ => Err(CommandError::UnexpectedReply),
        }
    }
}
