use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, Method,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    request::Parts,
};

use crate::{
    extract::{
        body::{media, multipart},
        route::full_uri,
    },
    value::{CompactDigest, Fingerprint},
};

/// There is no query.
const NO_QUERY: u8 = 0;
/// The method is `POST`, or the media type is `application/json`.
const USUAL: u8 = 1;
/// The codings of the body follow.
const CODINGS: u8 = 2;
/// Headers that the layer compares follow.
const HEADERS: u8 = 3;

const JSON: &[u8] = b"application/json";

/// Returns the fingerprint of the request as it came, byte by byte.
pub(crate) fn of_bytes(parts: &Parts, body: &Bytes, headers: &[HeaderName]) -> Fingerprint {
    let mut digest = of_head(parts, headers);
    match parts.headers.get(CONTENT_TYPE) {
        Some(value) if value.as_bytes() == JSON => {
            digest.marker(USUAL);
            digest.part(body);
        }
        _ => of_typed(&mut digest, &parts.headers, body),
    }
    Fingerprint::from_parts(Fingerprint::BYTES, digest.finish())
}

/// Adds the media type without its parameters, and the body.
fn of_typed(digest: &mut CompactDigest, headers: &HeaderMap, body: &Bytes) {
    let essence = media::essence(headers);
    if essence.eq_ignore_ascii_case(JSON) {
        digest.marker(USUAL);
    } else if essence.iter().any(u8::is_ascii_uppercase) {
        digest.part(&essence.to_ascii_lowercase());
    } else {
        digest.part(essence);
    }
    match media::boundary_of(essence, headers) {
        None => digest.part(body),
        Some(boundary) => multipart::pieces(body, boundary).for_each(|piece| digest.part(piece)),
    }
}

/// Starts a digest with method, path, query, the coding of the body, and the headers that count.
pub(super) fn of_head(parts: &Parts, headers: &[HeaderName]) -> CompactDigest {
    let uri = full_uri(parts);
    let mut digest = CompactDigest::new();
    if parts.method == Method::POST {
        digest.marker(USUAL);
    } else {
        digest.part(parts.method.as_str().as_bytes());
    }
    digest.part(uri.path().as_bytes());
    match uri.query() {
        None => digest.marker(NO_QUERY),
        Some(query) => digest.part(query.as_bytes()),
    }
    if parts.headers.contains_key(CONTENT_ENCODING) {
        of_codings(&mut digest, &parts.headers);
    }
    if !headers.is_empty() {
        of_headers(&mut digest, &parts.headers, headers);
    }
    digest
}

/// Adds the codings in the order in which they were applied; `identity` does not count (RFC 9110, sections 8.4 and
/// 12.5.3).
fn of_codings(digest: &mut CompactDigest, headers: &HeaderMap) {
    let lines = headers.get_all(CONTENT_ENCODING).iter();
    let codings = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',')).map(<[u8]>::trim_ascii);
    let codings: Vec<_> = codings
        .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
        .map(<[u8]>::to_ascii_lowercase)
        .collect();
    if codings.is_empty() {
        return;
    }
    digest.marker(CODINGS);
    digest.length(codings.len());
    for coding in &codings {
        digest.part(coding);
    }
}

fn of_headers(digest: &mut CompactDigest, headers: &HeaderMap, wanted: &[HeaderName]) {
    digest.marker(HEADERS);
    digest.length(wanted.len());
    for name in wanted {
        digest.part(name.as_str().as_bytes());
        let lines = headers.get_all(name);
        digest.length(lines.iter().count());
        for line in lines {
            digest.part(line.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of(request: http::request::Builder, body: &str) -> Fingerprint {
        let (parts, body) = request.body(Bytes::from(body.to_owned())).unwrap().into_parts();
        of_bytes(&parts, &body, &[])
    }

    fn asked(method: &str, uri: &str, content_type: Option<&str>, body: &str) -> Fingerprint {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        of(request, body)
    }

    #[test]
    fn each_part_counts() {
        let first = asked("POST", "/a?b=1", Some("application/json"), "{}");
        assert_eq!(first, asked("POST", "/a?b=1", Some("Application/JSON; charset=utf-8"), "{}"));
        for other in [
            asked("PATCH", "/a?b=1", Some("application/json"), "{}"),
            asked("POST", "/b?b=1", Some("application/json"), "{}"),
            asked("POST", "/a?b=2", Some("application/json"), "{}"),
            asked("POST", "/a", Some("application/json"), "{}"),
            asked("POST", "/a?", Some("application/json"), "{}"),
            asked("POST", "/a?b=1", Some("text/plain"), "{}"),
            asked("POST", "/a?b=1", None, "{}"),
            asked("POST", "/a?b=1", Some("application/json"), "{ }"),
        ] {
            assert_ne!(first, other);
        }
        assert_ne!(asked("POST", "/a", None, ""), asked("POST", "/a?", None, ""));
    }

    #[test]
    fn the_coding_counts() {
        let coded = |lines: &[&str]| {
            let request = Request::post("/").header(CONTENT_TYPE, "application/json");
            of(lines.iter().fold(request, |request, line| request.header(CONTENT_ENCODING, *line)), "{}")
        };
        assert_eq!(coded(&[]), coded(&["identity"]));
        assert_eq!(coded(&["gzip"]), coded(&["GZIP"]));
        assert_eq!(coded(&["gzip, br"]), coded(&["gzip", "br"]));
        let apart = [coded(&[]), coded(&["gzip"]), coded(&["br"]), coded(&["gzip, br"]), coded(&["br, gzip"])];
        assert!(apart.iter().enumerate().all(|(at, one)| !apart[at + 1..].contains(one)));
    }

    #[test]
    fn a_new_boundary_is_the_same_request() {
        let send = |boundary: &str, value: &str| {
            let content_type = format!("multipart/form-data; boundary={boundary}");
            let body = format!("--{boundary}\r\nname=a\r\n\r\n{value}\r\n--{boundary}--\r\n");
            asked("POST", "/", Some(&content_type), &body)
        };
        assert_eq!(send("one", "7"), send("another", "7"));
        assert_ne!(send("one", "7"), send("one", "8"));
    }
}
