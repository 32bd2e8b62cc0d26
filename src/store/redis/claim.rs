use redis::{Cmd, Pipeline, Value};

use crate::{
    store::{Claimed, Granted, Issued},
    value::{Claim, Issue, Mismatch, RecordKey, StoreError, StoreErrorKind, Verdict, judge},
};

use super::{
    RedisStore,
    error::Trouble,
    line::{Again, said},
    record::{Draft, Stored, UNTOLD, Unreadable, lease_and_span, runs},
    scripts::{ROOM, TAKEOVER},
};

/// What a claim found.
enum Look {
    /// Nothing; the record is the claim's now.
    Claimed,
    /// A record with its time left as `PTTL` tells it, or none where the claim must not create one.
    Found(Option<(Vec<u8>, i64)>),
    /// The same, on a server that takes no writes.
    Refused(Option<(Vec<u8>, i64)>, Trouble),
}

impl RedisStore {
    pub(super) async fn put_issued(&self, key: &RecordKey, issue: &Issue) -> Result<Issued, StoreError> {
        let (name, draft) = (self.space.name(key), Draft::issued(issue));
        let mut command = redis::cmd(if draft.span == 0 { "EXISTS" } else { "SET" });
        command.arg(name);
        if draft.span > 0 {
            command.arg(draft.whole()).arg("NX").arg("PX").arg(draft.span);
        }
        match self.line().command(&command, Again::No).await? {
            Value::Okay | Value::Int(0) => Ok(Issued::Done),
            Value::Nil | Value::Int(_) => Ok(Issued::Exists),
            _ => Err(Trouble::Odd.into()),
        }
    }

    /// One trip where the key is free or settled; two where a record runs or is taken over.
    pub(super) async fn try_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Claimed, StoreError> {
        let name = self.space.name(key);
        loop {
            let (found, refusal) = match self.look(&name, claim).await? {
                Look::Claimed => return Ok(Claimed::Granted(Granted::new(1, false))),
                Look::Found(found) => (found, None),
                Look::Refused(found, trouble) => (found, Some(trouble)),
            };
            let stored = match found.map(|(bytes, left)| Stored::read(bytes, left)).transpose() {
                Ok(stored) => stored,
                // Whatever a later version may mean by it, it is no free key and no match.
                Err(Unreadable::Newer) => return Ok(Claimed::Mismatch(Mismatch::Fingerprint)),
                Err(Unreadable::Torn) => return Err(torn()),
            };
            let verdict =
                judge(stored.as_ref().map(Stored::head).as_ref(), claim, stored.as_ref().map_or(0, Stored::age));
            return Ok(match verdict {
                Verdict::Grant { attempt, takeover } => {
                    if let Some(trouble) = refusal {
                        return Err(trouble.into());
                    }
                    let granted = match &stored {
                        Some(stored) => self.take_over(&name, claim, stored, Granted::new(attempt, takeover)).await?,
                        None => lease_and_span(claim).1 == 0,
                    };
                    if !granted {
                        continue;
                    }
                    Claimed::Granted(Granted::new(attempt, takeover))
                }
                Verdict::Granted { attempt, takeover } => Claimed::Granted(Granted::new(attempt, takeover)),
                Verdict::Running { holder, left } => Claimed::Running { holder, left },
                Verdict::Settled => Claimed::Settled(stored.and_then(|stored| stored.payload())),
                Verdict::Mismatch(what) => Claimed::Mismatch(what),
                Verdict::OutcomeUnknown => Claimed::OutcomeUnknown,
                Verdict::NotIssued => Claimed::NotIssued,
                Verdict::Foreign => Claimed::Foreign,
            });
        }
    }

    /// `SET NX GET` is claim and look in one. How old a record is matters only while it runs, so only then is it asked:
    /// a first request and a replay are the one command, without a `PTTL` that nobody looks at.
    async fn look(&self, name: &[u8], claim: &Claim) -> Result<Look, Trouble> {
        let draft = Draft::running(claim, 1, false, None);
        // A claim that has to find an issued record must not create one, and one that lives for no time leaves none.
        if claim.issued.is_some() || draft.span == 0 {
            return self.read(name).await.map(Look::Found);
        }
        let whole = draft.whole();
        let mut command = Cmd::with_capacity(7, name.len() + whole.len() + ROOM);
        command.arg("SET").arg(name).arg(whole).arg("NX").arg("GET").arg("PX").arg(draft.span);
        match self.line().command(&command, Again::Yes).await {
            Ok(Value::Nil) => Ok(Look::Claimed),
            Ok(Value::BulkString(bytes)) if runs(&bytes) => self.read(name).await.map(Look::Found),
            Ok(Value::BulkString(bytes)) => Ok(Look::Found(Some((bytes, UNTOLD)))),
            Ok(_) => Err(Trouble::Odd),
            Err(trouble) if trouble.refuses_writes() => Ok(Look::Refused(self.read(name).await?, trouble)),
            Err(trouble) => Err(trouble),
        }
    }

    /// A record and what is left of its life. Between the two it may change; that costs a wrong guess at the time left,
    /// since nothing but the script takes over.
    async fn read(&self, name: &[u8]) -> Result<Option<(Vec<u8>, i64)>, Trouble> {
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.cmd("GET").arg(name).cmd("PTTL").arg(name);
        let [record, left] = two(self.line().pipeline(&pipeline, Again::Yes).await?)?;
        match said(record)? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some((bytes, whole(left)?))),
            _ => Err(Trouble::Odd),
        }
    }

    /// Whether the record was still as it was seen, and is the claim's now.
    async fn take_over(&self, name: &[u8], claim: &Claim, seen: &Stored, granted: Granted) -> Result<bool, Trouble> {
        if seen.has_expired() {
            return Ok(false);
        }
        let draft = Draft::running(claim, granted.attempt, granted.takeover, seen.binding.as_ref());
        let span = draft.span.to_string();
        let arguments: [&[u8]; 6] =
            [&seen.seen(), &draft.front, &draft.times, &draft.rare, span.as_bytes(), &self.channel(name)];
        match self.line().script(&TAKEOVER, name, &arguments, Again::Yes).await? {
            Value::Int(1) => Ok(true),
            Value::Int(0) => Ok(false),
            _ => Err(Trouble::Odd),
        }
    }
}

pub(super) fn torn() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "what has the name of a record is none").without_effect()
}

/// Two answers to two commands.
fn two(answers: Vec<Value>) -> Result<[Value; 2], Trouble> {
    answers.try_into().map_err(|_| Trouble::Odd)
}

pub(super) fn whole(value: Value) -> Result<i64, Trouble> {
    match said(value)? {
        Value::Int(number) => Ok(number),
        _ => Err(Trouble::Odd),
    }
}
