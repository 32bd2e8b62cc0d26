//! The credentials that most services have.

use http::{
    HeaderMap, HeaderName,
    header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION},
};

use super::{COOKIES, add, finish};
use crate::{
    extract::cookies,
    value::{Caller, CompactDigest},
};

/// The names in the order in which they are hashed. The constants below state which is which.
const LIST: [&str; 18] = [
    "api-key",
    "apikey",
    "authorization",
    "cf-access-authenticated-user-email",
    "ocp-apim-subscription-key",
    "private-token",
    "remote-user",
    "x-access-token",
    "x-amzn-oidc-identity",
    "x-api-key",
    "x-auth-request-user",
    "x-auth-token",
    "x-forwarded-user",
    "x-goog-authenticated-user-id",
    "cookie",
    "cf-access-jwt-assertion",
    "x-amzn-oidc-data",
    "x-goog-iap-jwt-assertion",
];

const OF_AUTHORIZATION: u32 = 1 << 2;
/// Names of users, which a gateway sets.
const IDENTITIES: u32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13;
/// What is hashed as it is.
const HEADERS: u32 = OF_COOKIES - 1;
const OF_COOKIES: u32 = 1 << 14;
/// Tokens that a gateway signs for every hop: they do not identify who asks.
const GATEWAY_TOKENS: u32 = 1 << 15 | 1 << 16 | 1 << 17;

/// The first letters of the listed names, by their lengths: nearly all other headers are excluded by that.
const FIRST_LETTERS: [u32; 35] = first_letters();

const fn first_letters() -> [u32; 35] {
    let mut letters = [0; 35];
    let mut at = 0;
    while at < LIST.len() {
        let name = LIST[at].as_bytes();
        letters[name.len()] |= 1 << (name[0] - b'a');
        at += 1;
    }
    letters
}

/// Which of the listed headers a request has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen(u32);

impl Seen {
    fn of(headers: &HeaderMap) -> Self {
        let mut seen = 0;
        for name in headers.keys() {
            let name = name.as_str();
            let Some(letters) = FIRST_LETTERS.get(name.len()) else { continue };
            let letter = name.as_bytes()[0].wrapping_sub(b'a');
            if letter < 26 && letters & 1 << letter != 0 {
                seen |= bit(name);
            }
        }
        Self(seen)
    }

    fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    /// Returns whether a gateway names the caller in a token, which does not count.
    pub(crate) fn has_gateway_token(self) -> bool {
        self.has(GATEWAY_TOKENS)
    }

    /// Returns whether there is a cookie that could identify a session and does not count.
    pub(crate) fn leaves_out_a_cookie(self, headers: &HeaderMap) -> bool {
        self.has(OF_COOKIES) && self.leaves_out_cookies(headers) && cookies::any(headers, tells_a_session)
    }

    fn leaves_out_cookies(self, headers: &HeaderMap) -> bool {
        self.has(OF_AUTHORIZATION) && headers.get_all(AUTHORIZATION).iter().all(|value| tells_a_user(value.as_bytes()))
    }
}

pub(super) fn caller(headers: &HeaderMap) -> (Caller, Seen) {
    let seen = Seen::of(headers);
    if !seen.has(HEADERS | OF_COOKIES) {
        return (Caller::NONE, seen);
    }
    let mut digest = CompactDigest::new();
    for (at, name) in LIST.iter().enumerate() {
        if seen.has(HEADERS & 1 << at) {
            add(headers, &HeaderName::from_static(name), &mut digest);
        }
    }
    let counts = seen.has(OF_COOKIES) && !seen.leaves_out_cookies(headers);
    let told = counts && cookies::digest(headers, tells_a_session, COOKIES, &mut digest);
    let caller = if told || seen.has(HEADERS) { finish(digest) } else { Caller::NONE };
    (caller, seen)
}

/// Returns whether a reader of this header's value can use it as a credential.
pub(in crate::extract) fn is_secret(name: &HeaderName) -> bool {
    bit(name.as_str()) & !IDENTITIES != 0 || *name == COOKIE || *name == PROXY_AUTHORIZATION
}

fn bit(name: &str) -> u32 {
    LIST.iter().position(|known| *known == name).map_or(0, |at| 1 << at)
}

fn tells_a_session(name: &[u8]) -> bool {
    !cookies::is_of_no_session(name)
}

/// Returns whether an `Authorization` identifies a user by itself. One of `Basic` may name an application that serves
/// many users, and scripts send an empty one, or the text of a variable that was never set, beside a session's cookie.
fn tells_a_user(authorization: &[u8]) -> bool {
    let value = authorization.trim_ascii();
    let (scheme, credentials) = match value.iter().position(|&byte| byte == b' ') {
        Some(at) => (&value[..at], value[at..].trim_ascii_start()),
        None => (&value[..0], value),
    };
    let is_empty = ["", "null", "undefined", "basic", "bearer"];
    let is_empty = is_empty.iter().any(|word| credentials.eq_ignore_ascii_case(word.as_bytes()));
    !is_empty && !scheme.eq_ignore_ascii_case(b"basic")
}

#[cfg(test)]
mod tests {
    use super::{super::tests::headers, *};

    fn of(list: &[(&'static str, &'static str)]) -> Caller {
        caller(&headers(list)).0
    }

    #[test]
    fn each_place_of_credentials_counts() {
        assert_eq!(of(&[]), Caller::NONE);
        assert_eq!(of(&[("x-user", "ann"), ("content-type", "text/plain"), ("accept", "*/*")]), Caller::NONE);
        let mut all: Vec<_> = LIST[..15].iter().map(|name| of(&[(name, "ann")])).collect();
        all.extend([
            of(&[("x-api-key", "bob")]),
            of(&[("x-api-key", "ann"), ("x-api-key", "ann")]),
            of(&[("x-api-key", "ann"), ("cookie", "ann")]),
        ]);
        for (at, one) in all.iter().enumerate() {
            assert!(*one != Caller::NONE && !all[at + 1..].contains(one), "{at}");
        }
        assert_eq!(of(&[("x-other", "1"), ("authorization", "ann")]), of(&[("authorization", "ann")]));
    }

    #[test]
    fn what_is_signed_for_every_hop_does_not_count() {
        for name in &LIST[15..] {
            let (caller, seen) = caller(&headers(&[(name, "signed")]));
            assert!(caller == Caller::NONE && seen.has_gateway_token(), "{name}");
        }
    }

    #[test]
    fn cookies_beside_an_authorization() {
        for (authorization, counts) in [
            ("Bearer ann", false),
            ("bearer  ann", false),
            ("DPoP ann", false),
            ("a-token-without-a-scheme", false),
            ("Basic YW5uOng=", true),
            ("basic YW5uOng=", true),
            ("", true),
            ("Bearer", true),
            ("Bearer null", true),
            ("Bearer undefined", true),
        ] {
            let of = |cookie| of(&[("authorization", authorization), ("cookie", cookie)]);
            assert_eq!(of("sid=a") != of("sid=b"), counts, "{authorization}");
            let told = headers(&[("authorization", authorization), ("cookie", "sid=a")]);
            assert_eq!(Seen::of(&told).leaves_out_a_cookie(&told), !counts, "{authorization}");
        }
        let analytics = headers(&[("authorization", "Bearer ann"), ("cookie", "_ga=1")]);
        assert!(!Seen::of(&analytics).leaves_out_a_cookie(&analytics));
    }

    #[test]
    fn cookies_that_tell_no_session_are_no_credentials() {
        assert_eq!(of(&[("cookie", "_ga=1; AWSALB=2")]), Caller::NONE);
        assert_eq!(of(&[("cookie", "_ga=1; sid=2")]), of(&[("cookie", "sid=2")]));
    }

    #[test]
    fn what_can_be_used_is_a_secret() {
        let is_secret = |name| is_secret(&HeaderName::from_static(name));
        assert!(
            ["authorization", "x-api-key", "cookie", "private-token", "x-amzn-oidc-data"].map(is_secret) == [true; 5]
        );
        assert!(["x-forwarded-user", "remote-user", "x-user", "x-tenant", "host"].map(is_secret) == [false; 5]);
    }
}
