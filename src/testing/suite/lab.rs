use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    StoreError,
    fingerprint::Fingerprint,
    store::{
        Binding, Caller, Claim, Claimant, Claimed, Cursor, Filter, Finished, Issue, Issued, Mismatch, Page, Record,
        RecordKey, Release, Renewed, Settlement, Stats, StoreAdmin, TraceContext,
    },
};

use super::factory::AnyFactory;

/// Longer than any run, even one that a loaded machine keeps waiting.
pub(super) const LONG: Duration = Duration::from_secs(120);
/// Over once [`Lab::lapse`] has returned. Nothing may depend on it being *not* over yet; for that there is [`in_time`].
pub(super) const SHORT: Duration = Duration::from_millis(400);

/// What one rule works with: a namespace of its own, and time.
pub(super) struct Lab<'f> {
    factory: &'f dyn AnyFactory,
    namespace: String,
}

impl<'f> Lab<'f> {
    pub(super) fn new(factory: &'f dyn AnyFactory) -> Self {
        Self { factory, namespace: format!("suite_{}", random()) }
    }

    /// Returns a handle to the rule's namespace; each call returns another one.
    pub(super) async fn store(&self) -> Probe {
        Probe(self.factory.any_store(&self.namespace).await)
    }

    /// Returns a handle to a namespace that is not the rule's.
    pub(super) async fn elsewhere(&self) -> Probe {
        Probe(self.factory.any_store(&format!("{}_x", self.namespace)).await)
    }

    /// Lets time pass, and every task that can run do so.
    pub(super) async fn pass(&self, time: Duration) {
        self.factory.any_pass(time).await;
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until [`SHORT`] is over.
    pub(super) async fn lapse(&self) {
        self.pass(SHORT + SHORT / 2).await;
    }
}

/// Does what has to be done before a time is over, and returns that time and the result. If a busy machine makes it
/// late, it is done anew with a longer time.
pub(super) async fn in_time<T>(act: impl AsyncFn(Duration) -> T) -> (Duration, T) {
    for times in 0..4 {
        let (time, began) = (SHORT * 4_u32.pow(times), Instant::now());
        let done = act(time).await;
        if began.elapsed() < time {
            return (time, done);
        }
    }
    panic!("two calls in a row take longer than {:?}", SHORT * 64);
}

/// Runs all of them at once, on as many threads as the runtime has.
pub(super) async fn at_once<T: Send + 'static>(
    what: &str,
    calls: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::new();
    for call in calls {
        match call.await {
            Ok(answer) => answers.push(answer),
            Err(error) => panic!("{what}, several at once: {error}"),
        }
    }
    answers
}

/// Returns a key that nobody has used.
pub(super) fn key() -> RecordKey {
    named("/suite", Some("scope"), &random())
}

pub(super) fn named(route: &str, scope: Option<&str>, key: &str) -> RecordKey {
    match RecordKey::new(route, scope, key) {
        Ok(key) => key,
        Err(error) => panic!("the suite's own key is refused: {error}"),
    }
}

pub(super) fn random() -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(Claimant::random().to_bytes()));
    digits[..20].to_owned()
}

/// Returns a claim with a long lease, a note, a fingerprint, a caller and a trace, the same for every call except for
/// the claimant.
pub(super) fn claim() -> Claim {
    Claim {
        fingerprint: content(0),
        caller: ann(),
        note: Bytes::from_static(b"a \0 note \xff"),
        trace: Some(TraceContext::new([0xab; 16], [0; 8], 1)),
        ..Claim::new(LONG, LONG)
    }
}

/// Returns fingerprints that differ in their last byte only.
pub(super) fn content(number: u8) -> Fingerprint {
    let mut digest = [0x5a; 32];
    digest[31] ^= number;
    Fingerprint::from_parts(1, digest)
}

/// Returns the caller of [`claim`].
pub(super) fn ann() -> Caller {
    Caller::from_parts(1, [0xc3; 16])
}

/// Returns a caller that differs from [`ann`] in its last byte only.
pub(super) fn bob() -> Caller {
    let mut digest = [0xc3; 16];
    digest[15] = 0;
    Caller::from_parts(1, digest)
}

/// Returns the same claim with a lease that is over when it begins.
pub(super) fn lapsed() -> Claim {
    Claim { lease: Duration::ZERO, ..claim() }
}

/// Returns claims that differ from [`claim`] in what makes a request another one, with the mismatch of each. The caller
/// comes first.
pub(super) fn other_requests() -> Vec<(&'static str, Claim, Mismatch)> {
    let scheme = Fingerprint::from_parts(2, *content(0).digest());
    let mut requests = vec![
        ("another fingerprint", Claim { fingerprint: content(1), ..claim() }, Mismatch::Fingerprint),
        ("another fingerprint scheme", Claim { fingerprint: scheme, ..claim() }, Mismatch::Fingerprint),
    ];
    requests.extend(strangers().map(|(what, stranger)| (what, stranger, Mismatch::Caller)));
    requests
}

/// Returns claims that differ from [`claim`] in who asks.
pub(super) fn strangers() -> impl Iterator<Item = (&'static str, Claim)> {
    let scheme = Caller::from_parts(2, *ann().digest());
    let callers = [("another caller", bob()), ("another caller scheme", scheme), ("no caller", Caller::NONE)];
    let same = callers.map(|(what, caller)| (what, Claim { caller, ..claim() }));
    let other =
        ("another caller with another fingerprint", Claim { caller: bob(), fingerprint: content(1), ..claim() });
    same.into_iter().chain([other])
}

pub(super) fn settlement(claim: &Claim, payload: &'static [u8]) -> Settlement {
    Settlement::new(claim.claimant, Some(Bytes::from_static(payload)), LONG)
}

pub(super) fn release(claim: &Claim) -> Release {
    Release::new(claim.claimant, LONG)
}

/// Returns the release that takes the claim back.
pub(super) fn undo(claim: &Claim) -> Release {
    Release::undo(claim.claimant, LONG)
}

pub(super) fn binding() -> Binding {
    Binding::new("checkout", Some("ann"))
}

pub(super) fn token_claim() -> Claim {
    Claim { issued: Some(binding()), ..claim() }
}

/// A store whose errors are failures of the rule.
#[derive(Clone)]
pub(super) struct Probe(pub(super) Arc<dyn StoreAdmin>);

impl Probe {
    pub(super) async fn issue(&self, key: &RecordKey, life: Duration) -> Issued {
        answered("issue", self.0.issue(key, &Issue::new(binding(), life)).await)
    }

    pub(super) async fn claim(&self, key: &RecordKey, claim: &Claim) -> Claimed {
        answered("claim", self.0.claim(key, claim).await)
    }

    pub(super) async fn renew(&self, key: &RecordKey, claim: &Claim) -> Renewed {
        answered("renew", self.0.renew(key, claim).await)
    }

    pub(super) async fn settle(&self, key: &RecordKey, settlement: &Settlement) -> Finished {
        answered("settle", self.0.settle(key, settlement).await)
    }

    pub(super) async fn release(&self, key: &RecordKey, release: &Release) -> Finished {
        answered("release", self.0.release(key, release).await)
    }

    pub(super) async fn changed(&self, key: &RecordKey, holder: Claimant, within: Duration) {
        answered("changed", self.0.changed(key, holder, within).await);
    }

    pub(super) async fn inspect(&self, key: &RecordKey) -> Option<Record> {
        answered("inspect", self.0.inspect(key).await)
    }

    /// Returns the record of a key that should have one.
    pub(super) async fn record(&self, what: &str, key: &RecordKey) -> Record {
        match self.inspect(key).await {
            Some(record) => record,
            None => panic!("{what}: there should be a record, and there is none"),
        }
    }

    pub(super) async fn list(&self, filter: Filter, after: Option<Cursor>, limit: usize) -> Page {
        answered("list", self.0.list(filter, after, limit).await)
    }

    pub(super) async fn settle_as(&self, key: &RecordKey, seen: Claimant, settlement: &Settlement) -> Finished {
        answered("settle_as", self.0.settle_as(key, seen, settlement).await)
    }

    pub(super) async fn release_as(&self, key: &RecordKey, seen: Claimant, release: &Release) -> Finished {
        answered("release_as", self.0.release_as(key, seen, release).await)
    }

    pub(super) async fn forget(&self, key: &RecordKey) -> bool {
        answered("forget", self.0.forget(key).await)
    }

    pub(super) async fn purge(&self, limit: usize) -> u64 {
        answered("purge", self.0.purge(limit).await)
    }

    pub(super) async fn stats(&self) -> Stats {
        answered("stats", self.0.stats().await)
    }
}

fn answered<T>(verb: &str, answer: Result<T, StoreError>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(error) => panic!("`{verb}` failed: {error} ({:?})", error.kind()),
    }
}
