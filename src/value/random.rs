//! Random bytes, for what must be unique or secret.

/// Returns random bytes of the operating system.
///
/// # Panics
///
/// Panics if the operating system has no source of randomness.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("no source of randomness: {error}");
    }
    bytes
}
