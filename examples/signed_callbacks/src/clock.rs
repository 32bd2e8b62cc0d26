//! Time stamps of signatures.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How far a time stamp may be from now, in either direction. All senders here recommend five minutes.
const TOLERANCE: Duration = Duration::from_secs(300);

/// Whether `stamp`, in seconds since 1970, is of about `now`.
///
/// This keeps out deliveries that somebody captured long ago. It does not replace the claim: within five minutes, a
/// captured delivery passes, and is answered as the duplicate that it is. A check that remembers nonces is not wanted
/// here: it would refuse the sender's honest retries, or a retry within the same signature.
pub(crate) fn is_recent(stamp: &str, now: SystemTime) -> bool {
    let Ok(stamp) = stamp.parse::<u64>() else { return false };
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    now.abs_diff(stamp) <= TOLERANCE.as_secs()
}
