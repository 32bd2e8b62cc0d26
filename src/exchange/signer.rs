use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::value::{Binding, SigningKeys};

/// Tokens that prove by their signature that they were issued.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) keys: SigningKeys,
    /// The most by which the clocks of two processes differ.
    pub(crate) skew: Duration,
    pub(crate) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Signer {
    /// When a token expires that begins to live now, in milliseconds since the Unix epoch.
    pub(super) fn expiry(&self, life: Duration) -> u64 {
        self.now().saturating_add(millis(life))
    }

    pub(super) fn sign(&self, binding: &Binding, expires: u64, nonce: &[u8; 32]) -> String {
        self.keys.sign(binding, expires, nonce)
    }

    /// When the token expires and the nonce in it, if it is valid and has not expired yet.
    pub(super) fn verify(&self, token: &str, binding: &Binding) -> Option<(u64, [u8; 32])> {
        self.keys.verify(token, binding).filter(|&(expires, _)| expires > self.now())
    }

    /// What is left of the token's life by the clock that is most behind.
    pub(super) fn memory(&self, expires: u64) -> Duration {
        Duration::from_millis(expires.saturating_sub(self.now())).saturating_add(self.skew)
    }

    fn now(&self) -> u64 {
        millis((self.clock)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
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
