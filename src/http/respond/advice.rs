//! Warnings about callers that the layer cannot distinguish or confuses with others, and about layers in the wrong
//! order.
//!
//! `Warned` is an open-addressing table of hashes in atomics. It is read for every request without credentials, so it
//! has no lock. A lost race emits a warning twice, and a full table emits none; both are harmless.
//!
//! A warning belongs here if one request proves, or nearly proves, a mistake in the set-up. It names the route, what
//! was seen and the remedy, and how to confirm that it is meant. A warning about a single request belongs into an
//! event.

use std::sync::atomic::{AtomicU64, Ordering};

/// A warning about a route.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code))]
pub(crate) enum Advice {
    /// A request has no credential, and the layer has no setting for callers.
    NoCredential,
    /// A request has a gateway's token, and no credential that counts.
    GatewayToken,
    /// A cookie is left out of account beside an `Authorization`.
    CookieLeftOut,
    /// A caller is refused for its credentials.
    OtherCaller,
    /// The handler's side answered 401.
    AuthenticationInside,
    /// The same, on a layer whose tokens belong to nobody.
    AuthenticationInsideOfTokens,
    /// A 408 or 504 from the handler's side released the key.
    TimeoutInside,
    /// An answer was too long to be kept.
    AnswerTooLong,
    /// An answer was a stream, and is not kept.
    AnswerStreams,
    /// An answer has the status of gRPC in its trailers.
    AnswerOfGrpc,
    /// A `HEAD` came to a route whose `GET` is protected.
    UnprotectedHead,
}

/// How many pairs of route and advice are remembered. Beyond that nothing is reported any more: without a matched
/// route, each path is a route.
const ROUTES: usize = 256;

/// The pairs of route and advice that were reported, so that each is reported once.
pub(crate) struct Warned([AtomicU64; ROUTES]);

impl Warned {
    /// Creates it without any warning.
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ROUTES])
    }

    /// Returns whether this is the first time. Nothing is locked: this is asked for each request without credentials.
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

    /// Emits a warning, unless it was emitted for this route before.
    pub(crate) fn warn(&self, advice: Advice, route: &str) {
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

/// Emits the warning. Each text says what was seen, what it may mean, and the remedy.
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
        Advice::AuthenticationInside => tracing::warn!(
            route,
            "an answer of 401 came from inside this layer, so a duplicate is replayed an answer without being authenticated: \
             put the authentication in a layer outside this one, or let `.scope(scope::from_extractor(..))` do it; confirm \
             with `.unscoped()` that callers prove themselves in each request's body"
        ),
        Advice::AuthenticationInsideOfTokens => tracing::warn!(
            route,
            "an answer of 401 came from inside this layer, so whoever has a used token is replayed its answer without being \
             authenticated: put the authentication in a layer outside this one, and bind the tokens with `.principal(..)`"
        ),
        Advice::TimeoutInside => tracing::warn!(
            route,
            "an answer of 408 or 504 from inside this layer released its key, so the next try runs, though the effect may \
             have happened: put the timeout outside this layer, or keep such answers with `.keep(..)`"
        ),
        Advice::AnswerTooLong => tracing::warn!(
            route,
            "an answer is too long to be kept, so its duplicates receive a 409 `response-not-retained`: raise \
             `.response_limit(..)`, or let the handler confirm it with `Operation::stream()`"
        ),
        Advice::AnswerStreams => tracing::warn!(
            route,
            "an event stream is not kept, so its duplicates receive a 409 `response-not-retained`: let the handler confirm it \
             with `Operation::stream()`, or leave the route out with `.skip_routes(..)`"
        ),
        Advice::AnswerOfGrpc => tracing::warn!(
            route,
            "an answer of gRPC: this layer follows the status of HTTP, which is a success also if the call has failed, so a \
             failure is kept, and clients cannot read refusals. Put `GrpcLayer` of the package `tower-idempotency-grpc` in \
             its place"
        ),
        Advice::UnprotectedHead => tracing::warn!(
            route,
            "a `HEAD` is never protected, and this route's `GET` is: Axum serves both with one handler, which ran. If it \
             writes, route `HEAD` to something that does not write"
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
