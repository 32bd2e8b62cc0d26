//! Renew, settle and release: one script each, which compares the claimant and writes.
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
    connection::RetryOnDisconnect,
    error::CommandError,
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
        let (lease, span) = lease_and_span(claim);
        let (times, span) = (times(lease, span, 0), span.to_string());
        let arguments: [&[u8]; 3] = [&claim.claimant.to_bytes(), &times[..16], span.as_bytes()];
        match self.transport().script(&RENEW, &self.prefix.name(key), &arguments, RetryOnDisconnect::Yes).await? {
            Value::Int(1) => Ok(Renewed::Done),
            Value::Int(0) => Ok(Renewed::Lost),
            _ => Err(CommandError::UnexpectedReply.into()),
        }
    }

    /// Settles: in one script, or as a draft if the answer is large.
    pub(super) async fn settle_record(
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
        let flag = if settlement.payload.is_some() { PAYLOAD } else { 0 }.to_string();
        let span = millis(settlement.retention);
        let (times, span) = (times(0, span, length), span.to_string());
        let (name, owner) = (self.prefix.name(key), settlement.claimant.to_bytes());
        let channel = self.channel(&name);
        let (flag, span) = (flag.as_bytes(), span.as_bytes());
        if payload.len() >= LARGE && !settlement.retention.is_zero() {
            let settle = SettleArguments { runner, owner, lapsed, flag, times, payload, span, channel: &channel };
            if let Some(finished) = self.settle_large(&name, &settle).await? {
                return Ok(finished);
            }
        }
        self.fits(&name, payload.len()).await?;
        let arguments: [&[u8]; 8] = [&runner, &owner, lapsed, flag, &times, payload, span, &channel];
        finished(self.transport().script(&SETTLE, &name, &arguments, RetryOnDisconnect::Yes).await?)
    }

    /// Releases or undoes.
    pub(super) async fn release_record(
        &self,
        key: &RecordKey,
        behalf: Behalf,
        release: &Release,
    ) -> Result<Finished, StoreError> {
        let (runner, lapsed) = compared(behalf, release.claimant);
        let name = self.prefix.name(key);
        let keep = millis(release.keep);
        let span = keep.to_string();
        let undo: &[u8] = if release.undo { b"1" } else { b"0" };
        let (owner, channel) = (release.claimant.to_bytes(), self.channel(&name));
        let arguments: [&[u8]; 7] = [&runner, &owner, lapsed, &keep.to_be_bytes(), span.as_bytes(), &channel, undo];
        finished(self.transport().script(&RELEASE, &name, &arguments, RetryOnDisconnect::Yes).await?)
    }
}
