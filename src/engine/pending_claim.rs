//! A claim without an answer, and its release in the background.
//!
//! The release is repeated after a refusal, for one lease: the claim may reach the store after the release does.
//! Without that, a route that runs at most once would answer `outcome-unknown` for an operation that never ran.

use std::time::Duration;

use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::{Engine, timer::bounded};
use crate::{
    store::Finished,
    value::{Backoff, Claim, Event, RecordKey, Release, StoreVerb},
};

/// A claim that was sent and whose answer has not arrived.
///
/// If it is dropped in this state, the claim is released in the background: the store may have granted it, and nobody
/// would renew or settle it.
pub(super) struct PendingClaim<'a> {
    engine: &'a Engine,
    key: &'a RecordKey,
    claim: &'a Claim,
    /// The runtime that releases the claim. `None`: the guard is disarmed, or there is no runtime.
    runtime: Option<Handle>,
}

impl<'a> PendingClaim<'a> {
    /// Arms the guard. Call it before the claim is sent: the claim may take effect although its caller is dropped.
    pub(super) fn new(engine: &'a Engine, key: &'a RecordKey, claim: &'a Claim) -> Self {
        Self { engine, key, claim, runtime: Handle::try_current().ok() }
    }

    /// Ends the guard without a release, since the answer is known.
    pub(super) fn disarm(mut self) {
        self.runtime = None;
    }
}

impl Drop for PendingClaim<'_> {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let (engine, key) = (self.engine.clone(), self.key.clone());
        let release = Release::new(self.claim.claimant, self.claim.horizon);
        let lease = self.claim.lease;
        let work = async move { release_until_done(&engine, &key, &release, lease).await };
        // Past the bound on background tasks no release is spawned, and the lease has to lapse.
        if !self.engine.background_tasks.spawn_release(&runtime, work) {
            self.engine.report(&Event::NotRecorded { key: self.key, verb: StoreVerb::Release });
        }
    }
}

/// Sends the release until the store has done it, or for one lease after the store last failed: the claim may still be
/// on its way when the first release is refused, and a store that is away may come back.
async fn release_until_done(engine: &Engine, key: &RecordKey, release: &Release, lease: Duration) {
    let mut since = Instant::now();
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
    loop {
        match bounded(engine.store.release(key, release), engine.store_timeout).await {
            Ok(Finished::Done) => return engine.report(&Event::Withdrawn { key }),
            Ok(Finished::Refused(_)) if since.elapsed() >= lease => return,
            Ok(Finished::Refused(_)) => {}
            Err(error) if error.is_temporary() => since = Instant::now(),
            Ok(Finished::AlreadyDone) | Err(_) => return,
        }
        sleep(backoff.pause()).await;
    }
}
