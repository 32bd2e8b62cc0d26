//! Warnings about callers that the layer cannot tell apart, or takes for others.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a route is warned of.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code))]
pub(super) enum Advice {
    /// A request has no credential, and the layer was told nothing.
    NoCredential,
    /// A request has a gateway's token, and no credential that counts.
    GatewayToken,
    /// A cookie is left out of account beside an `Authorization`.
    CookieLeftOut,
    /// A caller is refused for its credentials.
    OtherCaller,
}

/// How many pairs of route and advice are told apart. Beyond that nobody is warned any more: without a matched route, each
/// path is one.
const ROUTES: usize = 256;

/// Which routes were warned of what, each once.
pub(super) struct Warned([AtomicU64; ROUTES]);

impl Warned {
    pub(super) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ROUTES])
    }

    /// Whether this is the first time. Nothing is locked: this is asked for each request without credentials.
    fn is_first(&self, advice: Advice, route: &str) -> bool {
        let hash = hash(advice as u8, route);
        let start = usize::try_from(hash).unwrap_or_default() % ROUTES;
        for step in 0..ROUTES {
            let place = &self.0[(start + step) % ROUTES];
            match place.load(Ordering::Relaxed) {
                0 => match place.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return true,
                    Err(other) if other == hash => return false,
                    Err(_) => {}
                },
                known if known == hash => return false,
                _ => {}
            }
        }
        false
    }

    pub(super) fn warn(&self, advice: Advice, route: &str) {
        if self.is_first(advice, route) {
            warn(advice, route);
        }
    }
}

/// FNV-1a, by eight bytes at a time; never 0, which stands for a place that is free.
fn hash(advice: u8, route: &str) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ u64::from(advice);
    let mut add = |word: u64| hash = (hash ^ word).wrapping_mul(PRIME).rotate_left(29);
    let (words, rest) = route.as_bytes().as_chunks::<8>();
    for word in words {
        add(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    add(u64::from_le_bytes(last));
    add(route.len() as u64);
    hash.max(1)
}

#[cold]
#[cfg_attr(not(feature = "tracing"), allow(clippy::needless_pass_by_value, unused_variables))]
fn warn(advice: Advice, route: &str) {
    #[cfg(feature = "tracing")]
    match advice {
        Advice::NoCredential => tracing::warn!(
            route,
            "a request without any credential that the layer knows: whoever sends its key and content gets its answer. Say \
             whose keys they are with `.scope(..)`, name what identifies a caller with `.credentials(..)`, or confirm that \
             all callers are one with `.unscoped()`",
        ),
        Advice::GatewayToken => tracing::warn!(
            route,
            "a gateway's token is signed anew for each request, so it does not tell callers apart, and the request has no \
             other credential: whoever sends its key and content gets its answer. Verify the token in a layer outside and \
             say whose keys they are with `.scope(..)`, name another header with `.credentials(..)`, or confirm that all \
             callers are one with `.unscoped()`",
        ),
        Advice::CookieLeftOut => tracing::warn!(
            route,
            "a cookie beside an `Authorization` is left out of account. If the cookie, and not the `Authorization`, says who \
             asks, name it with `.scope(scope::cookie(..))` or `.credentials([credential::cookie(..)])`; otherwise \
             confirm it with `.credentials([header::AUTHORIZATION])`, `.scope(..)` or `.unscoped()`",
        ),
        Advice::OtherCaller => tracing::warn!(
            route,
            "a key was sent again with other credentials and refused (422 `other-caller`). If an honest caller's credentials \
             change between two tries (a renewed token, a signature for each request), say whose keys they are with \
             `.scope(..)`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_is_warned_once() {
        let warned = Warned::new();
        for route in ["/orders", "/orders/{id}/pay", "", "/orders\0"] {
            assert!(warned.is_first(Advice::NoCredential, route), "{route}");
            assert!(!warned.is_first(Advice::NoCredential, route), "{route}");
            assert!(warned.is_first(Advice::OtherCaller, route), "{route}");
        }
    }

    #[test]
    fn routes_without_end_are_warned_no_more() {
        let warned = Warned::new();
        let firsts =
            (0..1000).filter(|number| warned.is_first(Advice::OtherCaller, &format!("/orders/{number}"))).count();
        assert_eq!(firsts, ROUTES);
        assert!(!warned.is_first(Advice::OtherCaller, "/orders/7"));
    }
}
