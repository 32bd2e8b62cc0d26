//! What counts as the same request.
//!
//! Every kind but a closure covers method, path and query. [`bytes`] is the default.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{header::CONTENT_TYPE, request::Parts};

use super::{multipart, route::full_uri};
use crate::value::{Digest, Fingerprint};

/// Takes the fingerprint of a request. Made by the functions of this module.
#[derive(Clone)]
#[must_use = "a fingerprint extractor does nothing until a layer has it"]
pub struct FingerprintExtractor(Kind);

type FingerprintFn = dyn Fn(&Parts, &Bytes) -> Fingerprint + Send + Sync;

#[derive(Clone)]
enum Kind {
    Bytes,
    Off,
    Closure(Arc<FingerprintFn>),
}

/// Method, path, query, the media type without its parameters, and the bytes of the body.
///
/// A body of `multipart/form-data` is compared with its boundary taken out, since an honest retry draws a new one.
pub fn bytes() -> FingerprintExtractor {
    FingerprintExtractor(Kind::Bytes)
}

/// None: any request under a key is taken for the first one.
///
/// This is for senders whose retries differ, such as callbacks with a new time stamp and signature each time.
pub fn off() -> FingerprintExtractor {
    FingerprintExtractor(Kind::Off)
}

/// What the closure makes of the request's head and body.
///
/// ```
/// use tower_idempotency::{Fingerprint, IdempotencyLayer, MemoryStore, fingerprint};
///
/// // The first line is what counts.
/// let first_line = fingerprint::from_fn(|parts, body| {
///     let line = body.split(|&byte| byte == b'\n').next().unwrap_or_default();
///     Fingerprint::builder().part(parts.method.as_str()).part(line).build()
/// });
/// let layer = IdempotencyLayer::new(MemoryStore::new()).fingerprint(first_line);
/// # drop(layer);
/// ```
pub fn from_fn(fingerprint: impl Fn(&Parts, &Bytes) -> Fingerprint + Send + Sync + 'static) -> FingerprintExtractor {
    FingerprintExtractor(Kind::Closure(Arc::new(fingerprint)))
}

impl FingerprintExtractor {
    pub(crate) fn of(&self, parts: &Parts, body: &Bytes) -> Fingerprint {
        match &self.0 {
            Kind::Bytes => of_bytes(parts, body),
            Kind::Off => Fingerprint::OFF,
            Kind::Closure(fingerprint) => fingerprint(parts, body),
        }
    }
}

impl fmt::Debug for FingerprintExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Bytes => "fingerprint::bytes()",
            Kind::Off => "fingerprint::off()",
            Kind::Closure(_) => "fingerprint::from_fn(..)",
        })
    }
}

/// Takes the fingerprint of the request as it came, byte by byte.
pub(crate) fn of_bytes(parts: &Parts, body: &Bytes) -> Fingerprint {
    let uri = full_uri(parts);
    let content_type = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let media_type = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let mut digest = Digest::new();
    digest.part(parts.method.as_str().as_bytes());
    digest.part(uri.path().as_bytes());
    match uri.query() {
        None => digest.length(0),
        Some(query) => {
            digest.length(1);
            digest.part(query.as_bytes());
        }
    }
    lower(&mut digest, media_type);
    match multipart::boundary(content_type) {
        None => digest.part(body),
        Some(boundary) => multipart::pieces(body, boundary).for_each(|piece| digest.part(piece)),
    }
    Fingerprint::from_parts(Fingerprint::BYTES, digest.finish())
}

fn lower(digest: &mut Digest, media_type: &[u8]) {
    if media_type.iter().any(u8::is_ascii_uppercase) {
        digest.part(&media_type.to_ascii_lowercase());
    } else {
        digest.part(media_type);
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of(method: &str, uri: &str, content_type: Option<&str>, body: &str) -> Fingerprint {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let (parts, body) = request.body(Bytes::from(body.to_owned())).unwrap().into_parts();
        bytes().of(&parts, &body)
    }

    #[test]
    fn each_part_counts() {
        let first = of("POST", "/a?b=1", Some("application/json"), "{}");
        assert_eq!(first, of("POST", "/a?b=1", Some("Application/JSON; charset=utf-8"), "{}"));
        for other in [
            of("PATCH", "/a?b=1", Some("application/json"), "{}"),
            of("POST", "/b?b=1", Some("application/json"), "{}"),
            of("POST", "/a?b=2", Some("application/json"), "{}"),
            of("POST", "/a", Some("application/json"), "{}"),
            of("POST", "/a?", Some("application/json"), "{}"),
            of("POST", "/a?b=1", Some("text/plain"), "{}"),
            of("POST", "/a?b=1", None, "{}"),
            of("POST", "/a?b=1", Some("application/json"), "{ }"),
        ] {
            assert_ne!(first, other);
        }
        assert_ne!(of("POST", "/a", None, ""), of("POST", "/a?", None, ""));
    }

    #[test]
    fn a_new_boundary_is_the_same_request() {
        let send = |boundary: &str, value: &str| {
            let content_type = format!("multipart/form-data; boundary={boundary}");
            let body = format!("--{boundary}\r\nname=a\r\n\r\n{value}\r\n--{boundary}--\r\n");
            of("POST", "/", Some(&content_type), &body)
        };
        assert_eq!(send("one", "7"), send("another", "7"));
        assert_ne!(send("one", "7"), send("one", "8"));
    }
}
