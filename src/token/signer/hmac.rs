use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use super::SigningKeys;
use crate::value::{Binding, millis};

/// How long a spent token is remembered at least beyond its lifetime, however little clocks differ: a claim that was
/// sent while it was good may be on its way, or wait.
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
    /// Returns when a token expires that begins to live now, in milliseconds since the Unix epoch.
    pub(crate) fn expiry(&self, lifetime: Duration) -> u64 {
        self.clock.now().saturating_add(millis(lifetime))
    }

    pub(crate) fn sign(&self, binding: &Binding, expires: u64, nonce: &[u8; 32]) -> String {
        self.keys.sign(binding, expires, nonce)
    }

    /// Returns when the token expires and the nonce in it, if it was signed for this. It may have expired.
    pub(crate) fn verify(&self, token: &str, binding: &Binding) -> Option<(u64, [u8; 32])> {
        self.keys.verify(token, binding)
    }

    pub(crate) fn has_expired(&self, expires: u64) -> bool {
        expires <= self.clock.now()
    }

    /// Returns what is left of the token's lifetime by the clock that is most behind. That may be this process's own,
    /// as it is now: if it was ahead when the token was issued, the others accept the token until they have come as
    /// far.
    pub(crate) fn memory(&self, expires: u64) -> Duration {
        let left = Duration::from_millis(expires.saturating_sub(self.clock.uncorrected()));
        left.saturating_add(self.skew.max(UNDER_WAY))
    }
}

/// A wall clock that is never set back, and goes on meanwhile: the records of spent tokens live by the store's clock,
/// which goes on too, and a token must not be good for longer than its record is there.
#[derive(Clone)]
pub(crate) struct WallClock {
    read: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// The time since some moment, which nobody sets.
    steady: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// The most, in milliseconds, that the one has shown more than the other.
    ahead: Arc<AtomicI64>,
}

impl WallClock {
    /// The clock of the operating system. Whatever it has shown to anybody in this process is not taken back.
    pub(crate) fn system() -> Self {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        static AHEAD: LazyLock<Arc<AtomicI64>> = LazyLock::new(|| Arc::new(AtomicI64::new(i64::MIN)));

        let began = *BEGAN;
        Self { read: Arc::new(SystemTime::now), steady: Arc::new(move || began.elapsed()), ahead: Arc::clone(&AHEAD) }
    }

    /// A clock of a test's, beside Tokio's time, which stands still if it is paused.
    pub(crate) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        let began = tokio::time::Instant::now();
        Self {
            read: Arc::new(read),
            steady: Arc::new(move || began.elapsed()),
            ahead: Arc::new(AtomicI64::new(i64::MIN)),
        }
    }

    /// Returns what the clock showed last and what has passed since, or what it shows now, whichever is more.
    fn now(&self) -> u64 {
        // In this order: a thread that is held up in between must not move the clock ahead for ever.
        let now = self.uncorrected();
        let steady = signed(millis((self.steady)()));
        let ahead = signed(now).saturating_sub(steady);
        let ahead = self.ahead.fetch_max(ahead, Relaxed).max(ahead);
        u64::try_from(steady.saturating_add(ahead)).unwrap_or(now)
    }

    /// Returns what the clock shows, set back or not.
    fn uncorrected(&self) -> u64 {
        millis((self.read)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("keys", &self.keys).field("skew", &self.skew).finish_non_exhaustive()
    }
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
