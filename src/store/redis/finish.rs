//! Renew, settle and release: one script each, which compares the claimant and writes; or the plain command of `compared`.
//!
//! The script answers 1 (done), 2 (done before), nothing (no record) or the record, from which the caller learns why it
//! was refused. An operator's settlement is the same script with another claimant: the one that was seen, whose lease
//! must have lapsed.
//!
//! The span of the record is set anew by each of them, together with the expiry of Redis, so that the age of the last
//! change stays right. A retention of zero removes the record in the same script.

use redis::Value;

use crate::{
    store::{Finished, Renewed},
    value::{Behalf, Claim, Claimant, RecordKey, Release, Settlement, StoreError, StoreErrorKind},
};

use super::{
    RedisStore,
    command::Argument,
    compared::Compared,
    connection::RetryOnDisconnect,
    error::{CommandError, maybe_done},
    record::{PAYLOAD, lease_and_span, millis, times},
    reply::finished,
    scripts::{RELEASE, RENEW, SETTLE},
    settle_large::{LARGE, LARGEST, SettleArguments},
};

/// Returns what a script compares: the claimant that the record must name, and '1' if its lease must have lapsed.
fn compared(behalf: Behalf, by: Claimant) -> ([u8; 16], &'static [u8]) {
    let lapsed: &[u8] = if behalf == Behalf::Own { b"0" } else { b"1" };
    (behalf.runner(by).to_bytes(), lapsed)
}

impl RedisStore {
    /// Renews a lease.
    pub(super) async fn renew_claim(&self, key: &RecordKey, claim: &Claim) -> Result<Renewed, StoreError> {
        // A renewal changes the record.
        self.shared.own_claims.forget(claim.claimant);
        let (lease, span) = lease_and_span(claim);
        let (name, claimant, times) = (self.prefix.parts(key), claim.claimant.to_bytes(), times(lease, span, 0));
        let arguments = [Argument::Bytes(&claimant), Argument::Bytes(&times[..16]), Argument::Number(span)];
        match self.transport().script(&RENEW, Argument::Joined(&name), &arguments, RetryOnDisconnect::Yes).await? {
            Value::Int(1) => Ok(Renewed::Done),
            Value::Int(0) => Ok(Renewed::Lost),
            _ => Err(CommandError::UnexpectedReply.into()),
        }
    }

    /// Settles: by a plain command if that can decide, else by a script.
    pub(super) async fn settle_record(
        &self,
        key: &RecordKey,
        behalf: Behalf,
        settlement: &Settlement,
    ) -> Result<Finished, StoreError> {
        let plain = match behalf {
            Behalf::Own => self.settle_compared(key, settlement).await?,
            Behalf::Of(_) => Compared::Undecided,
        };
        match plain {
            Compared::Done => Ok(Finished::Done),
            Compared::Undecided => self.settle_by_script(key, behalf, settlement).await,
            Compared::MaybeDone => self.settle_by_script(key, behalf, settlement).await.map_err(maybe_done),
        }
    }

    /// Settles in one script, or as a draft if the answer is large.
    async fn settle_by_script(
        &self,
        key: &RecordKey,
        behalf: Behalf,
        settlement: &Settlement,
    ) -> Result<Finished, StoreError> {
        let payload = settlement.payload.as_deref().unwrap_or_default();
        let Some(length) = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= LARGEST) else {
            return Err(StoreError::new(
                StoreErrorKind::TooLarge,
                "the answer is larger than Redis takes: lower the layer's `response_limit`",
            ));
        };
        let (runner, lapsed) = compared(behalf, settlement.claimant);
        let flag = if settlement.payload.is_some() { PAYLOAD } else { 0 };
        let span = millis(settlement.retention);
        let (times, name) = (times(0, span, length), self.prefix.parts(key));
        let (name, owner) = (Argument::Joined(&name), settlement.claimant.to_bytes());
        let channel = &*self.channel(name);
        let settle = SettleArguments { runner, owner, lapsed, flag, times, payload, span, channel };
        if payload.len() >= LARGE
            && span > 0
            && let Some(finished) = self.settle_large(name, &settle).await?
        {
            return Ok(finished);
        }
        self.fits(name, payload.len()).await?;
        let [runner, owner, lapsed, times, payload, channel] =
            [&runner[..], &owner, lapsed, &times, payload, channel].map(Argument::Bytes);
        let arguments =
            [runner, owner, lapsed, Argument::Number(flag.into()), times, payload, Argument::Number(span), channel];
        finished(self.transport().script(&SETTLE, name, &arguments, RetryOnDisconnect::Yes).await?)
    }

    /// Releases or undoes: by a plain command if that can decide, else by a script.
    pub(super) async fn release_record(
        &self,
        key: &RecordKey,
        behalf: Behalf,
        release: &Release,
    ) -> Result<Finished, StoreError> {
        let plain = match behalf {
            Behalf::Own => self.release_compared(key, release).await?,
            Behalf::Of(_) => Compared::Undecided,
        };
        match plain {
            Compared::Done => Ok(Finished::Done),
            Compared::Undecided => self.release_by_script(key, behalf, release).await,
            Compared::MaybeDone => self.release_by_script(key, behalf, release).await.map_err(maybe_done),
        }
    }

    async fn release_by_script(
        &self,
        key: &RecordKey,
        behalf: Behalf,
        release: &Release,
    ) -> Result<Finished, StoreError> {
        let (runner, lapsed) = compared(behalf, release.claimant);
        let name = self.prefix.parts(key);
        let (name, owner, keep) = (Argument::Joined(&name), release.claimant.to_bytes(), millis(release.keep));
        let (span, channel, undo) = (keep.to_be_bytes(), self.channel(name), Argument::Number(release.undo.into()));
        let [runner, owner, lapsed, span, channel] =
            [&runner[..], &owner, lapsed, &span, &channel].map(Argument::Bytes);
        let arguments = [runner, owner, lapsed, span, Argument::Number(keep), channel, undo];
        finished(self.transport().script(&RELEASE, name, &arguments, RetryOnDisconnect::Yes).await?)
    }
}
