//! What counts as the same request.
//!
//! Every kind but a closure covers method, path and query. [`bytes()`] is the default.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::request::Parts;

#[cfg(feature = "form")]
use super::form;
#[cfg(feature = "json")]
use super::json::{self, Pointer, Selection};
use super::{media, multipart, route::full_uri};
use crate::value::{Digest, Fingerprint, Refusal};

pub use super::into::IntoFingerprintExtractor;

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
    #[cfg(feature = "json")]
    Json(Arc<Selection>),
    #[cfg(feature = "form")]
    Form,
}

/// Method, path, query, the media type without its parameters, and the bytes of the body.
///
/// A body of `multipart/form-data` is compared with its boundary taken out, since an honest retry draws a new one. The order
/// of query parameters counts: for clients that build the query anew for each try, take the fingerprint
/// [by a closure](from_fn) that sorts them.
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
///
/// A digest of the content that a layer further out has verified (`Content-Digest`, RFC 9530) can serve as well, and
/// spares hashing the body again. Take it from that layer, never from the header, which anybody can write:
///
/// ```
/// use tower_idempotency::{Fingerprint, fingerprint};
///
/// #[derive(Clone)]
/// struct VerifiedDigest([u8; 32]);
///
/// let by_digest = fingerprint::from_fn(|parts, body| {
///     let head = Fingerprint::builder().part(parts.method.as_str()).part(parts.uri.to_string());
///     match parts.extensions.get::<VerifiedDigest>() {
///         Some(VerifiedDigest(digest)) => head.part("verified").part(digest).build(),
///         None => head.part("read").part(body).build(),
///     }
/// });
/// # drop(by_digest);
/// ```
pub fn from_fn(fingerprint: impl Fn(&Parts, &Bytes) -> Fingerprint + Send + Sync + 'static) -> FingerprintExtractor {
    FingerprintExtractor(Kind::Closure(Arc::new(fingerprint)))
}

/// The JSON value of the body: white space, the order of members and the spelling of numbers do not matter.
///
/// Numbers are compared by their exact decimal value: 1, 1.0 and 1e0 are one, 9007199254740993 and 9007199254740992 are
/// two. A body with a repeated member has no single value; it equals only the same bytes. A body that is not JSON is
/// refused (400 `body-invalid`), and so is one that is nested more than 128 deep.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub fn json() -> FingerprintExtractor {
    FingerprintExtractor(Kind::Json(Arc::new(Selection::All)))
}

/// Only these parts of a JSON body, by JSON pointers (RFC 6901). A part that is absent is unlike one that is `null`.
///
/// ```
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, fingerprint};
///
/// let layer = IdempotencyLayer::new(MemoryStore::new())
///     .fingerprint(fingerprint::json_only(["/amount", "/order/id"]));
/// # drop(layer);
/// ```
///
/// # Panics
///
/// Where one of them is no JSON pointer.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
#[track_caller]
pub fn json_only<'a>(pointers: impl IntoIterator<Item = &'a str>) -> FingerprintExtractor {
    FingerprintExtractor(Kind::Json(Arc::new(Selection::Only(parse(pointers)))))
}

/// All of a JSON body but these parts, such as the time at which it was sent.
///
/// # Panics
///
/// Where one of them is no JSON pointer.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
#[track_caller]
pub fn json_except<'a>(pointers: impl IntoIterator<Item = &'a str>) -> FingerprintExtractor {
    FingerprintExtractor(Kind::Json(Arc::new(Selection::Except(parse(pointers)))))
}

#[cfg(feature = "json")]
#[track_caller]
fn parse<'a>(pointers: impl IntoIterator<Item = &'a str>) -> Box<[Pointer]> {
    let mut parsed = Vec::new();
    for pointer in pointers {
        match Pointer::parse(pointer) {
            Ok(pointer) => parsed.push(pointer),
            Err(what) => panic!("{pointer:?}: {what}"),
        }
    }
    parsed.into()
}

/// The fields of a form, whatever their order: `application/x-www-form-urlencoded` or `multipart/form-data`.
///
/// A body that is neither is refused (400 `body-invalid`).
#[cfg(feature = "form")]
#[cfg_attr(docsrs, doc(cfg(feature = "form")))]
pub fn form() -> FingerprintExtractor {
    FingerprintExtractor(Kind::Form)
}

impl FingerprintExtractor {
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.0, Kind::Off)
    }

    #[cfg_attr(not(any(feature = "json", feature = "form")), allow(clippy::unnecessary_wraps))]
    pub(crate) fn of(&self, parts: &Parts, body: &Bytes) -> Result<Fingerprint, Refusal> {
        Ok(match &self.0 {
            Kind::Bytes => of_bytes(parts, body),
            Kind::Off => Fingerprint::OFF,
            Kind::Closure(fingerprint) => fingerprint(parts, body),
            #[cfg(feature = "json")]
            Kind::Json(selection) => of_json(parts, body, selection)?,
            #[cfg(feature = "form")]
            Kind::Form => {
                let mut digest = of_head(parts);
                form::digest(parts, body, &mut digest).map_err(invalid)?;
                Fingerprint::from_parts(Fingerprint::FORM, digest.finish())
            }
        })
    }
}

#[cfg(feature = "json")]
fn of_json(parts: &Parts, body: &Bytes, selection: &Selection) -> Result<Fingerprint, Refusal> {
    let root = json::parse(body).map_err(invalid)?;
    let head = of_head(parts);
    let mut digest = head.clone();
    let (scheme, raw) = match selection {
        Selection::All => (Fingerprint::JSON, Fingerprint::JSON_BYTES),
        Selection::Only(_) => (Fingerprint::JSON_ONLY, Fingerprint::JSON_BYTES),
        Selection::Except(_) => (Fingerprint::JSON_EXCEPT, Fingerprint::JSON_BYTES),
    };
    if json::digest(&root, selection, &mut digest).is_ok() {
        return Ok(Fingerprint::from_parts(scheme, digest.finish()));
    }
    let mut digest = head;
    digest.part(body);
    Ok(Fingerprint::from_parts(raw, digest.finish()))
}

#[cfg(any(feature = "json", feature = "form"))]
fn invalid(what: &'static str) -> Refusal {
    Refusal::BodyInvalid(std::borrow::Cow::Borrowed(what))
}

impl fmt::Debug for FingerprintExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Bytes => "fingerprint::bytes()",
            Kind::Off => "fingerprint::off()",
            Kind::Closure(_) => "fingerprint::from_fn(..)",
            #[cfg(feature = "json")]
            Kind::Json(_) => "fingerprint::json*(..)",
            #[cfg(feature = "form")]
            Kind::Form => "fingerprint::form()",
        })
    }
}

/// Takes the fingerprint of the request as it came, byte by byte.
pub(crate) fn of_bytes(parts: &Parts, body: &Bytes) -> Fingerprint {
    let mut digest = of_head(parts);
    let essence = media::essence(&parts.headers);
    lower(&mut digest, essence);
    match media::boundary_of(essence, &parts.headers) {
        None => digest.part(body),
        Some(boundary) => multipart::pieces(body, boundary).for_each(|piece| digest.part(piece)),
    }
    Fingerprint::from_parts(Fingerprint::BYTES, digest.finish())
}

/// Method, path and query.
fn of_head(parts: &Parts) -> Digest {
    let uri = full_uri(parts);
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
    digest
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
    use http::{Request, header::CONTENT_TYPE};

    use super::*;

    fn of(method: &str, uri: &str, content_type: Option<&str>, body: &str) -> Fingerprint {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let (parts, body) = request.body(Bytes::from(body.to_owned())).unwrap().into_parts();
        bytes().of(&parts, &body).unwrap()
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
