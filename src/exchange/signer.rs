use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use crate::value::{Binding, SigningKeys};

/// How long a spent token is remembered at least beyond its life, however little clocks differ: a claim that was sent
/// while it was good may be on its way, or wait.
const UNDER_WAY: Duration = Duration::from_secs(30);

/// Tokens that prove by their signature that they were issued.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) keys: SigningKeys,
    /// The most by which the clocks of two processes differ.
    pub(crate) skew: Duration,
    pub(crate) clock: WallClock,
}

impl Signer {
    /// When a token expires that begins to live now, in milliseconds since the Unix epoch.
    pub(super) fn expiry(&self, life: Duration) -> u64 {
        self.clock.now().saturating_add(millis(life))
    }

    pub(super) fn sign(&self, binding: &Binding, expires: u64, nonce: &[u8; 32]) -> String {
        self.keys.sign(binding, expires, nonce)
    }

    /// When the token expires and the nonce in it, if it was signed for this. It may have expired.
    pub(super) fn verify(&self, token: &str, binding: &Binding) -> Option<(u64, [u8; 32])> {
        self.keys.verify(token, binding)
    }

    pub(super) fn has_expired(&self, expires: u64) -> bool {
        expires <= self.clock.now()
    }

    /// What is left of the token's life by the clock that is most behind.
    pub(super) fn memory(&self, expires: u64) -> Duration {
        let left = Duration::from_millis(expires.saturating_sub(self.clock.now()));
        left.saturating_add(self.skew.max(UNDER_WAY))
    }
}

/// A wall clock that stands still if it is set back, until it has caught up: a token that has expired, and was forgotten
/// since, must not be good again.
#[derive(Clone)]
pub(crate) struct WallClock {
    read: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    latest: Arc<AtomicU64>,
}

impl WallClock {
    /// The clock of the operating system. Whatever it has shown to anybody in this process is not taken back.
    pub(crate) fn system() -> Self {
        static LATEST: LazyLock<Arc<AtomicU64>> = LazyLock::new(Arc::default);

        Self { read: Arc::new(SystemTime::now), latest: Arc::clone(&LATEST) }
    }

    pub(crate) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), latest: Arc::default() }
    }

    fn now(&self) -> u64 {
        let now = millis((self.read)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
        self.latest.fetch_max(now, Relaxed).max(now)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("keys", &self.keys).field("skew", &self.skew).finish_non_exhaustive()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
