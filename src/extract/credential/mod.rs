//! The credentials of a request, which tell callers apart on a layer without a scope.
//!
//! Another caller with the same key is refused (422 `other-caller`): it receives neither the first one's answer nor a
//! run of its own. So a caller has to send the same credentials with every try. See [the guide](crate::guide::callers).
//!
//! By default, the credentials are
//!
//! - the values of `Authorization`, `X-Api-Key`, `Api-Key`, `Apikey`, `X-Auth-Token`, `X-Access-Token`, `Private-Token`
//!   and `Ocp-Apim-Subscription-Key`;
//! - the identities that gateways set, and that stay the same from request to request: `X-Forwarded-User`,
//!   `X-Auth-Request-User`, `Remote-User`, `X-Amzn-Oidc-Identity`, `X-Goog-Authenticated-User-Id` and
//!   `Cf-Access-Authenticated-User-Email`;
//! - the cookies, as a set of pairs. Beside an `Authorization` of another scheme than `Basic` they do not count, unless
//!   it is empty or only `Bearer`, `Bearer null` or `Bearer undefined`. Cookies that identify no session or are renewed
//!   by themselves never count: `_ga`, `_ga_*`, `_gid`, `_gcl_*`, `_fbp`, `_hj*`, `_clck`, `_clsk`, `AWSALB`,
//!   `AWSALBCORS`, `AWSALBTG`, `AWSALBTGCORS`, `__cf_bm`, `__cflb`, `cf_clearance`, `_cfuvid`, `ARRAffinity*`,
//!   `OptanonConsent`, `XSRF-TOKEN`, `csrftoken`, `_csrf` and `csrf_token`.
//!
//! A value that is drawn or signed anew for a hop, a page or a try, such as a gateway's own token, does not count.
//!
//! An application that has other credentials names all of them:
//!
//! ```
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, credential};
//!
//! let layer = IdempotencyLayer::new(MemoryStore::new())
//!     .credentials([credential::header("X-Session"), credential::cookie("session")]);
//! # drop(layer);
//! ```

mod usual;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, header::COOKIE};

use super::cookies;
use crate::value::{Caller, CompactDigest};

pub(crate) use self::usual::Seen;
pub(super) use self::usual::is_secret;

/// Cookies follow.
const COOKIES: u8 = 1;

/// Returns whether a reader of this header's value can use it as a credential.
#[cfg(feature = "_sql")]
pub(crate) fn is_credential(name: &HeaderName) -> bool {
    is_secret(name)
}

/// A place of a request that has a credential. Created by the functions of this module, or from a [`HeaderName`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a credential does nothing until a layer has it"]
pub struct Credential(CredentialLocation);

#[derive(Clone, Debug, PartialEq, Eq)]
enum CredentialLocation {
    Header(HeaderName),
    Cookie(Box<str>),
}

/// Takes all values of a header. Those of `Cookie` are a set of pairs, without the ones that identify no session.
///
/// # Panics
///
/// Panics if `name` is not a valid header name.
#[track_caller]
pub fn header(name: &str) -> Credential {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
    name.into()
}

/// Takes one cookie. It counts beside any other credential.
///
/// # Panics
///
/// Panics if `name` is not a valid cookie name (RFC 6265, section 4.1.1).
#[track_caller]
pub fn cookie(name: &str) -> Credential {
    assert!(cookies::is_name(name), "{name:?} is no name of a cookie");
    Credential(CredentialLocation::Cookie(name.into()))
}

impl From<HeaderName> for Credential {
    fn from(name: HeaderName) -> Self {
        Self(CredentialLocation::Header(name))
    }
}

/// The credentials that identify the caller, if there is no scope.
#[derive(Clone, Debug, Default)]
pub(crate) enum Credentials {
    /// The credentials that most services have.
    #[default]
    Usual,
    /// The credentials that the application has named.
    Named(Arc<Named>),
}

/// Each once, and in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    headers: Vec<HeaderName>,
    cookies: Vec<Box<str>>,
    all_cookies: bool,
}

impl Credentials {
    pub(crate) fn of(credentials: impl IntoIterator<Item = Credential>) -> Self {
        let mut named = Named::default();
        for Credential(place) in credentials {
            match place {
                CredentialLocation::Header(name) if name == COOKIE => named.all_cookies = true,
                CredentialLocation::Header(name) => named.headers.push(name),
                CredentialLocation::Cookie(name) => named.cookies.push(name),
            }
        }
        named.headers.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        named.headers.dedup();
        named.cookies.sort_unstable();
        named.cookies.dedup();
        Self::Named(Arc::new(named))
    }

    /// Returns the caller of a request; none if it has none of the credentials.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> (Caller, Seen) {
        match self {
            Self::Usual => usual::caller(headers),
            Self::Named(named) => (named.caller(headers), Seen::default()),
        }
    }
}

impl Named {
    fn caller(&self, headers: &HeaderMap) -> Caller {
        let mut digest = CompactDigest::new();
        let mut any = false;
        for name in self.headers.iter().filter(|name| headers.contains_key(*name)) {
            add(headers, name, &mut digest);
            any = true;
        }
        let counts = |name: &[u8]| {
            let named = self.cookies.iter().any(|cookie| cookie.as_bytes() == name);
            named || (self.all_cookies && !cookies::is_of_no_session(name))
        };
        any |= cookies::digest(headers, counts, COOKIES, &mut digest);
        if any { finish(digest) } else { Caller::NONE }
    }
}

/// Feeds a header that is there to `digest`.
fn add(headers: &HeaderMap, name: &HeaderName, digest: &mut CompactDigest) {
    let values = headers.get_all(name);
    digest.part(name.as_str().as_bytes());
    digest.length(values.iter().count());
    values.iter().for_each(|value| digest.part(value.as_bytes()));
}

/// The way in which callers are made.
const SCHEME: u8 = 1;

fn finish(digest: CompactDigest) -> Caller {
    let mut half = [0; 16];
    half.copy_from_slice(&digest.finish()[..16]);
    Caller::from_parts(SCHEME, half)
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::AUTHORIZATION};

    use super::*;

    pub(super) fn headers(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn named_ones_count_and_nothing_else() {
        let credentials = Credentials::of([header("X-Session"), cookie("session")]);
        let of = |list: &[(&'static str, &'static str)]| credentials.caller(&headers(list)).0;
        assert_eq!(of(&[("authorization", "a"), ("cookie", "theme=dark")]), Caller::NONE);
        assert_eq!(of(&[("cookie", "session=a; theme=dark")]), of(&[("cookie", "session=a")]));
        assert_eq!(of(&[("x-session", "a"), ("authorization", "b")]), of(&[("x-session", "a")]));
        let apart = [
            of(&[("x-session", "a")]),
            of(&[("x-session", "b")]),
            of(&[("cookie", "session=a")]),
            of(&[("x-session", "a"), ("cookie", "session=a")]),
        ];
        assert!(apart.iter().enumerate().all(|(at, one)| !apart[at + 1..].contains(one)));
    }

    #[test]
    fn header_names_are_credentials() {
        let one = Credentials::of([AUTHORIZATION, COOKIE].map(Credential::from));
        let other = Credentials::of([header("cookie"), header("authorization"), header("cookie")]);
        let of =
            |credentials: &Credentials, list: &[(&'static str, &'static str)]| credentials.caller(&headers(list)).0;
        let list = &[("authorization", "Bearer a"), ("cookie", "s=1")];
        assert_eq!(of(&one, list), of(&other, list));
        // Named by hand, cookies count beside everything.
        assert_ne!(of(&one, list), of(&one, &list[..1]));
        // Alone, a header is the same caller as by default.
        assert_eq!(of(&one, &list[..1]), of(&Credentials::Usual, &list[..1]));
    }

    #[test]
    #[should_panic(expected = "\"no blanks\" is no header name")]
    fn a_bad_header_name_is_told_at_once() {
        let _ = header("no blanks");
    }
}
