//! Which headers of an answer are kept, and why the others are not. The same holds for trailers.
//!
//! Three groups are left out. Fields of the message, which a server makes anew (hop-by-hop, framing, date). Fields of
//! one exchange or one client: a replayed cookie would put another client into the first one's session. And fields that
//! `Connection` names. `include_header` adds to what is kept of the second group; `exclude_header` leaves out any
//! other field.
//!
//! A challenge of a 401 or 407 is kept although it belongs to the exchange: without it the replayed answer would be
//! malformed. Only schemes whose challenge is the same for everybody are kept; a nonce or a connection-bound scheme is
//! not.

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{self, CONNECTION, CONTENT_TYPE, GetAll},
};

/// Which headers of an answer are kept for its replays.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderPolicy {
    /// Fields that are kept although they belong to one client.
    pub(crate) also: Vec<HeaderName>,
    /// Fields that are left out although others keep them.
    pub(crate) not: Vec<HeaderName>,
}

impl HeaderPolicy {
    /// The fields that are kept.
    ///
    /// `Connection` is looked at first, since it may name any field. The order of the conditions is that of their cost.
    pub(crate) fn of<'a>(
        &self,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
        let connection = headers.get_all(CONNECTION);
        let connection_is_empty = connection.iter().next().is_none();
        headers.iter().filter(move |(name, value)| {
            // Most answers have no other field, and it is on none of the lists.
            (*name == CONTENT_TYPE && self.not.is_empty() && connection_is_empty)
                || !is_hop_by_hop(name)
                    && (!is_per_client(name) || self.also.contains(name) || is_lasting_challenge(status, name, value))
                    && !self.not.contains(name)
                    && !is_named_by(&connection, name)
        })
    }
}

/// Fields that describe one message and not its content.
static OF_THE_MESSAGE: [HeaderName; 7] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::CONTENT_LENGTH,
    header::DATE,
    header::AGE,
];

/// Fields that a server makes anew for each message: hop-by-hop (RFC 9110, section 7.6.1), framing, and times.
pub(crate) fn is_hop_by_hop(name: &HeaderName) -> bool {
    OF_THE_MESSAGE.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Fields that belong to one client or one exchange: cookies, challenges, CORS, and what others use for sessions.
static OF_THE_EXCHANGE: [&str; 19] = [
    "authentication-info",
    "authorization",
    "clear-site-data",
    "csrf-token",
    "dpop-nonce",
    "proxy-authenticate",
    "proxy-authentication-info",
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
    "x-access-token",
    "x-auth-token",
    "x-csrf-token",
    "x-csrftoken",
    "x-refresh-token",
    "x-session-token",
    "x-subject-token",
    "x-xsrf-token",
    "xsrf-token",
];

/// Returns whether the field belongs to one client or exchange.
fn is_per_client(name: &HeaderName) -> bool {
    OF_THE_EXCHANGE.binary_search(&name.as_str()).is_ok() || name.as_str().starts_with("access-control-")
}

/// A 401 has to say how to authenticate (RFC 9110, section 15.5.2), and a 407 too. Schemes whose challenge is made for
/// one connection or has a nonce in it are left out.
fn is_lasting_challenge(status: StatusCode, name: &HeaderName, value: &HeaderValue) -> bool {
    let expected = match status {
        StatusCode::UNAUTHORIZED => header::WWW_AUTHENTICATE,
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => header::PROXY_AUTHENTICATE,
        _ => return false,
    };
    let passing = [&b"negotiate"[..], b"ntlm", b"kerberos", b"digest"];
    let is_passing = |scheme: &[u8]| passing.iter().any(|passing| scheme.eq_ignore_ascii_case(passing));
    *name == expected && !schemes(value.as_bytes()).any(is_passing)
}

/// The words of a list of challenges that can be schemes: the first word of each member that is not a parameter.
fn schemes(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let mut escaped = false;
    let members = value.split(move |&byte| {
        let ends = byte == b',' && !quoted;
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
        ends
    });
    members.filter_map(|member| {
        let member = member.trim_ascii();
        let end = member.iter().position(|&byte| byte == b' ' || byte == b'=').unwrap_or(member.len());
        (member.get(end) != Some(&b'=')).then(|| &member[..end])
    })
}

/// Returns whether `Connection` lists the field, which makes it hop-by-hop.
fn is_named_by(connection: &GetAll<'_, HeaderValue>, name: &HeaderName) -> bool {
    connection
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .any(|named| named.trim_ascii().eq_ignore_ascii_case(name.as_str().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept() {
        let hop = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_bytes(b"\xe9, X-Hop").unwrap())]);
        let kept = HeaderPolicy::default();
        let keeps = |kept: &HeaderPolicy, name: &str| {
            let mut headers = hop.clone();
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("v"));
            kept.of(StatusCode::OK, &headers).any(|(kept, _)| kept == name)
        };
        for name in ["location", "etag", "trailer", "content-type", "retry-after", "x-a", "vary"] {
            assert!(keeps(&kept, name), "{name}");
        }
        for name in [
            "connection",
            "keep-alive",
            "proxy-connection",
            "te",
            "transfer-encoding",
            "upgrade",
            "content-length",
            "date",
            "age",
            "x-hop",
            "set-cookie",
            "www-authenticate",
            "proxy-authenticate",
            "authentication-info",
            "access-control-allow-origin",
            "access-control-expose-headers",
            "x-auth-token",
            "x-csrf-token",
            "x-subject-token",
            "clear-site-data",
        ] {
            assert!(!keeps(&kept, name), "{name}");
        }
        let chosen = HeaderPolicy { also: vec![header::SET_COOKIE, header::DATE], not: vec![header::ETAG] };
        assert!(keeps(&chosen, "set-cookie") && !keeps(&chosen, "etag") && !keeps(&chosen, "date"));
    }

    #[test]
    fn the_names_are_sorted() {
        assert!(OF_THE_EXCHANGE.is_sorted());
    }

    #[test]
    fn a_challenge_is_kept_with_its_401() {
        let keeps = |status: u16, name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            HeaderPolicy::default().of(StatusCode::from_u16(status).unwrap(), &headers).count() == 1
        };
        for value in
            ["Basic realm=\"a, Digest \\\", NTLM\"", "Bearer", "Basic realm=a, Bearer error=\"x\", scope=digest"]
        {
            assert!(keeps(401, "www-authenticate", value), "{value}");
            assert!(!keeps(403, "www-authenticate", value), "{value}");
            assert!(!keeps(401, "proxy-authenticate", value) && keeps(407, "proxy-authenticate", value), "{value}");
        }
        for value in [
            "Negotiate",
            "negotiate a87421000492aa874209af8bc028",
            "NTLM",
            "Digest nonce=a",
            "Basic realm=a, Digest nonce=b",
        ] {
            assert!(!keeps(401, "www-authenticate", value), "{value}");
        }
    }
}
