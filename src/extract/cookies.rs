//! The cookies of a request, whatever lines they come in.

use http::{HeaderMap, header::COOKIE};

use crate::value::CompactDigest;

/// Cookies that identify no session, or that something renews by itself between two tries of one request.
const OF_NO_SESSION: [&str; 18] = [
    "ARRAffinity",
    "ARRAffinitySameSite",
    "AWSALB",
    "AWSALBCORS",
    "AWSALBTG",
    "AWSALBTGCORS",
    "OptanonConsent",
    "XSRF-TOKEN",
    "__cf_bm",
    "__cflb",
    "_cfuvid",
    "_clck",
    "_clsk",
    "_csrf",
    "_fbp",
    "cf_clearance",
    "csrf_token",
    "csrftoken",
];

/// The same, by the beginning of their names.
const FAMILIES_OF_NO_SESSION: [&str; 4] = ["ARRAffinity", "_ga_", "_gcl_", "_hj"];

/// How many pairs are sorted in place; a request with more of them allocates.
const USUAL: usize = 16;

/// Returns whether `name` is a token (RFC 6265, section 4.1.1; RFC 9110, section 5.6.2).
pub(super) fn is_name(name: &str) -> bool {
    let of_a_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(of_a_token)
}

/// Returns whether a cookie of this name does not identify who asks.
pub(super) fn is_of_no_session(name: &[u8]) -> bool {
    matches!(name, b"_ga" | b"_gid")
        || OF_NO_SESSION.iter().any(|known| known.as_bytes() == name)
        || FAMILIES_OF_NO_SESSION.iter().any(|family| name.starts_with(family.as_bytes()))
}

/// Returns the only value of the cookie `wanted`; `None` if it is not there, not UTF-8, or there with two values.
pub(super) fn value<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let mut values = pairs(headers).filter(|pair| name(pair) == wanted.as_bytes()).map(|pair| {
        let behind_the_name = pair.get(wanted.len() + 1..).unwrap_or_default();
        behind_the_name.trim_ascii_start()
    });
    let first = values.next()?;
    if values.any(|other| other != first) {
        return None;
    }
    std::str::from_utf8(first).ok()
}

/// Feeds the cookies whose names count to `digest`, as a set: their order and their lines do not matter, and a pair
/// that is there twice counts once. Returns whether there was any; nothing is fed if there was none.
pub(super) fn digest(
    headers: &HeaderMap,
    counts: impl Fn(&[u8]) -> bool,
    marker: u8,
    digest: &mut CompactDigest,
) -> bool {
    let counted = || pairs(headers).filter(|pair| counts(name(pair)));
    let mut few: [&[u8]; USUAL] = [b""; USUAL];
    let mut many = Vec::new();
    let mut length = 0;
    for pair in counted() {
        if let Some(place) = few.get_mut(length) {
            *place = pair;
        }
        length += 1;
    }
    let sorted = if length <= USUAL {
        &mut few[..length]
    } else {
        many.extend(counted());
        &mut many[..]
    };
    if sorted.is_empty() {
        return false;
    }
    sorted.sort_unstable();
    let is_new = |at: usize| at == 0 || sorted[at] != sorted[at - 1];
    digest.marker(marker);
    digest.length((0..length).filter(|&at| is_new(at)).count());
    (0..length).filter(|&at| is_new(at)).for_each(|at| digest.part(sorted[at]));
    true
}

/// Returns whether there is a cookie whose name counts.
pub(super) fn any(headers: &HeaderMap, counts: impl Fn(&[u8]) -> bool) -> bool {
    pairs(headers).any(|pair| counts(name(pair)))
}

/// Returns each `name=value`. A browser sends one line of them, HTTP/2 perhaps several (RFC 9113, section 8.2.3).
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(COOKIE).into_iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b';')).map(<[u8]>::trim_ascii);
    pairs.filter(|pair| !pair.is_empty())
}

fn name(pair: &[u8]) -> &[u8] {
    let end = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
    pair[..end].trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (COOKIE, HeaderValue::from_str(line).unwrap())).collect()
    }

    fn digest_of(lines: &[&str]) -> Option<[u8; 32]> {
        let mut out = CompactDigest::new();
        digest(&of(lines), |name| !is_of_no_session(name), 1, &mut out).then(|| out.finish())
    }

    #[test]
    fn cookies_are_a_set() {
        let one = digest_of(&["a=1; b=2"]);
        for same in [&["b=2;a=1"][..], &["b=2", "a=1"], &[" a=1 ;; b=2; a=1"], &["_ga=7; a=1; b=2; _ga_X=8"]] {
            assert_eq!(digest_of(same), one, "{same:?}");
        }
        for other in [&["a=1"][..], &["a=1; b=3"], &["a=1; b=2; c=3"], &["a=1; B=2"], &["a=1; b"], &["a=1;b=2;b=3"]] {
            assert_ne!(digest_of(other), one, "{other:?}");
        }
        let many: Vec<_> = (0..40).map(|number| format!("c{number}=1")).collect();
        let backwards: Vec<_> = many.iter().rev().cloned().collect();
        assert_eq!(digest_of(&[&many.join("; ")]), digest_of(&[&backwards.join(";")]));
        assert_ne!(digest_of(&[&many.join("; ")]), digest_of(&[&many[1..].join("; ")]));
    }

    #[test]
    fn some_tell_no_session() {
        for name in
            ["_ga", "_ga_7X", "_gid", "_gcl_au", "_hjid", "_clck", "AWSALBCORS", "ARRAffinitySameSite", "csrftoken"]
        {
            assert!(is_of_no_session(name.as_bytes()), "{name}");
            assert_eq!(digest_of(&[&format!("{name}=1")]), None, "{name}");
        }
        for name in ["_gang", "session", "AWSALBX", "_csrf_session", "csrf", "", "__Host-sid"] {
            assert!(!is_of_no_session(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn values() {
        let headers = of(&["a=1; b = 2 ; c=\"x=y\"", "d; e="]);
        for (name, expected) in
            [("a", Some("1")), ("c", Some("\"x=y\"")), ("e", Some("")), ("d", Some("")), ("x", None)]
        {
            assert_eq!(value(&headers, name), expected, "{name}");
        }
    }

    #[test]
    fn names() {
        assert!(is_name("__Host-sid") && is_name("a.b"));
        assert!(!["", "a b", "a=", "é", "a;"].iter().any(|name| is_name(name)));
    }
}
