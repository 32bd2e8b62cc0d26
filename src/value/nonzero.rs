use std::time::Duration;

/// Returns `time`, a setting that makes no sense if it is zero.
///
/// # Panics
///
/// Panics if `time` is zero.
#[track_caller]
pub(crate) fn nonzero(what: &str, time: Duration) -> Duration {
    assert!(!time.is_zero(), "a {what} of zero: nothing could be done in it");
    time
}
