use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{self, CONNECTION, GetAll},
};

/// Which headers of an answer are kept for its replays.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptHeaders {
    pub(crate) also: Vec<HeaderName>,
    pub(crate) not: Vec<HeaderName>,
}

impl KeptHeaders {
    /// The fields that are kept.
    pub(crate) fn of<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
        let connection = headers.get_all(CONNECTION);
        headers.iter().filter(move |(name, _)| {
            !is_of_the_message(name)
                && (!is_of_the_exchange(name) || self.also.contains(name))
                && !self.not.contains(name)
                && !is_named_by(&connection, name)
        })
    }
}

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
pub(super) fn is_of_the_message(name: &HeaderName) -> bool {
    OF_THE_MESSAGE.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Fields that belong to one client or one exchange: cookies, challenges, CORS.
fn is_of_the_exchange(name: &HeaderName) -> bool {
    name == header::SET_COOKIE
        || name == header::WWW_AUTHENTICATE
        || name == header::PROXY_AUTHENTICATE
        || name.as_str().starts_with("access-control-")
        || matches!(name.as_str(), "authentication-info" | "proxy-authentication-info" | "set-cookie2")
}

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
        let kept = KeptHeaders::default();
        let keeps = |kept: &KeptHeaders, name: &str| {
            let mut headers = hop.clone();
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("v"));
            kept.of(&headers).any(|(kept, _)| kept == name)
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
        ] {
            assert!(!keeps(&kept, name), "{name}");
        }
        let chosen = KeptHeaders { also: vec![header::SET_COOKIE, header::DATE], not: vec![header::ETAG] };
        assert!(keeps(&chosen, "set-cookie") && !keeps(&chosen, "etag") && !keeps(&chosen, "date"));
    }
}
