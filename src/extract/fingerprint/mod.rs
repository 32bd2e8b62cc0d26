//! Fingerprints: what counts as the same request.
//!
//! Every kind but a closure covers method, path, query and the body's coding (`Content-Encoding`). [`bytes()`] is the
//! default. Headers do not count, unless [`with_headers`](FingerprintExtractor::with_headers) names them.

mod head;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, request::Parts};

#[cfg(feature = "form")]
use super::body::form;
#[cfg(feature = "json")]
use super::json::{self, Pointer, Selection};
use crate::value::Refusal;

pub use super::into::IntoFingerprintExtractor;
pub use crate::value::{Fingerprint, FingerprintBuilder};

pub(crate) use self::head::of_bytes;
#[cfg(any(feature = "json", feature = "form"))]
use self::head::of_head;

/// An extractor of a request's fingerprint. Created by the functions of this module.
#[derive(Clone)]
#[must_use = "a fingerprint extractor does nothing until a layer has it"]
pub struct FingerprintExtractor {
    kind: FingerprintKind,
    /// The headers that count too, each once and in the order of their names.
    headers: Arc<[HeaderName]>,
}

type FingerprintFn = dyn Fn(&Parts, &Bytes) -> Fingerprint + Send + Sync;

#[derive(Clone)]
enum FingerprintKind {
    Bytes,
    Off,
    Closure(Arc<FingerprintFn>),
    #[cfg(feature = "json")]
    Json(Arc<Selection>),
    /// All fields but these.
    #[cfg(feature = "form")]
    Form(Arc<[Box<str>]>),
}

/// Compares method, path, query, coding, the media type without its parameters, and the bytes of the body.
///
/// A body of `multipart/form-data` is compared with its boundary taken out, since an honest retry draws a new one. The
/// order of query parameters counts: for clients that build the query anew for each try, take the fingerprint [by a
/// closure](from_fn) that sorts them.
pub fn bytes() -> FingerprintExtractor {
    FingerprintExtractor::new(FingerprintKind::Bytes)
}

/// Compares nothing: every request under a key counts as the first one.
///
/// This is for senders whose retries differ, such as callbacks with a new time stamp and signature each time.
pub fn off() -> FingerprintExtractor {
    FingerprintExtractor::new(FingerprintKind::Off)
}

/// Compares what the closure returns for the request's head and body.
///
/// ```
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, fingerprint::{Fingerprint, self}};
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
/// use tower_idempotency::fingerprint::{Fingerprint, self};
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
    FingerprintExtractor::new(FingerprintKind::Closure(Arc::new(fingerprint)))
}

/// Compares the JSON value of the body: white space, the order of members and the spelling of numbers do not matter.
///
/// Numbers are compared by their exact decimal value: 1, 1.0 and 1e0 are equal, 9007199254740993 and 9007199254740992
/// are different. A body with a repeated member has no single value; it equals only the same bytes. A body that is not
/// JSON is refused (400 `body-invalid`), and so is one that is nested more than 128 deep or has more than 50,000 values
/// in it.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub fn json() -> FingerprintExtractor {
    FingerprintExtractor::new(FingerprintKind::Json(Arc::new(Selection::All)))
}

/// Compares only these parts of a JSON body, by JSON pointers (RFC 6901). A part that is absent is unlike one that is
/// `null`.
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
/// Panics if one of them is not a valid JSON pointer.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
#[track_caller]
pub fn json_only<'a>(pointers: impl IntoIterator<Item = &'a str>) -> FingerprintExtractor {
    FingerprintExtractor::new(FingerprintKind::Json(Arc::new(Selection::Only(parse(pointers)))))
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

/// Compares the fields of a form: `application/x-www-form-urlencoded` or `multipart/form-data`.
///
/// The order of fields with one name counts, since rows of a table are sent so; the order between different names does
/// not. A body that is neither is refused (400 `body-invalid`), and so is one of more than 1,000 fields.
#[cfg(feature = "form")]
#[cfg_attr(docsrs, doc(cfg(feature = "form")))]
pub fn form() -> FingerprintExtractor {
    FingerprintExtractor::new(FingerprintKind::Form(Arc::default()))
}

impl FingerprintExtractor {
    fn new(kind: FingerprintKind) -> Self {
        Self { kind, headers: Arc::default() }
    }

    /// Compares these headers too, such as the tenant's or the version of the API. A header that is missing is unlike
    /// an empty one, and the order of its lines counts.
    ///
    /// ```
    /// use http::HeaderName;
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, fingerprint};
    ///
    /// let by_tenant = fingerprint::bytes().with_headers([HeaderName::from_static("x-tenant")]);
    /// let layer = IdempotencyLayer::new(MemoryStore::new()).fingerprint(by_tenant);
    /// # drop(layer);
    /// ```
    ///
    /// A second call adds to the first. Name nothing that changes between two tries of one request, such as a date, a
    /// signature or a trace: an honest retry would be refused (422).
    ///
    /// # Panics
    ///
    /// Panics if the fingerprint is [`off`] or a closure, which reads the headers itself.
    #[track_caller]
    pub fn with_headers(mut self, headers: impl IntoIterator<Item = HeaderName>) -> Self {
        assert!(
            !matches!(self.kind, FingerprintKind::Off | FingerprintKind::Closure(_)),
            "{self:?}.with_headers(..): headers are compared beside a content, and by a closure itself"
        );
        let mut all: Vec<_> = self.headers.iter().cloned().chain(headers).collect();
        all.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        all.dedup();
        self.headers = all.into();
        self
    }

    /// Leaves these fields out of the comparison, such as the time at which a request was sent, and its signature: JSON
    /// pointers (RFC 6901) for JSON, names of fields for forms.
    ///
    /// ```
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, fingerprint};
    ///
    /// let layer = IdempotencyLayer::new(MemoryStore::new())
    ///     .fingerprint(fingerprint::json().without_fields(["/timestamp", "/sign"]));
    /// # drop(layer);
    /// ```
    ///
    /// A second call adds to the first.
    ///
    /// # Panics
    ///
    /// Panics if one of them is not a valid JSON pointer, or if the fingerprint is not one of all of a JSON body or all
    /// of a form.
    #[cfg(any(feature = "json", feature = "form"))]
    #[cfg_attr(docsrs, doc(cfg(any(feature = "json", feature = "form"))))]
    #[track_caller]
    pub fn without_fields<'a>(self, fields: impl IntoIterator<Item = &'a str>) -> Self {
        let kind = match &self.kind {
            #[cfg(feature = "json")]
            FingerprintKind::Json(selection) if !matches!(**selection, Selection::Only(_)) => {
                let before = match &**selection {
                    Selection::Without(before) => &**before,
                    _ => &[],
                };
                FingerprintKind::Json(Arc::new(Selection::Without([before, &parse(fields)].concat().into())))
            }
            #[cfg(feature = "form")]
            FingerprintKind::Form(before) => {
                let mut names: Vec<Box<str>> =
                    before.iter().cloned().chain(fields.into_iter().map(Into::into)).collect();
                names.sort_unstable();
                names.dedup();
                FingerprintKind::Form(names.into())
            }
            _ => panic!("{self:?}.without_fields(..): only `json()` and `form()` compare all of the fields"),
        };
        Self { kind, ..self }
    }

    pub(crate) fn is_off(&self) -> bool {
        matches!(self.kind, FingerprintKind::Off)
    }

    #[cfg_attr(not(any(feature = "json", feature = "form")), allow(clippy::unnecessary_wraps))]
    pub(crate) fn of(&self, parts: &Parts, body: &Bytes) -> Result<Fingerprint, Refusal> {
        Ok(match &self.kind {
            FingerprintKind::Bytes => of_bytes(parts, body, &self.headers),
            FingerprintKind::Off => Fingerprint::OFF,
            FingerprintKind::Closure(fingerprint) => fingerprint(parts, body),
            #[cfg(feature = "json")]
            FingerprintKind::Json(selection) => self.of_json(parts, body, selection)?,
            #[cfg(feature = "form")]
            FingerprintKind::Form(without) => {
                let mut digest = of_head(parts, &self.headers);
                form::digest(parts, body, without, &mut digest).map_err(invalid)?;
                Fingerprint::from_parts(Fingerprint::FORM, digest.finish())
            }
        })
    }

    #[cfg(feature = "json")]
    fn of_json(&self, parts: &Parts, body: &Bytes, selection: &Selection) -> Result<Fingerprint, Refusal> {
        let root = json::parse(body).map_err(invalid)?;
        let head = of_head(parts, &self.headers);
        let mut digest = head.clone();
        let scheme = match selection {
            Selection::All => Fingerprint::JSON,
            Selection::Only(_) => Fingerprint::JSON_ONLY,
            Selection::Without(_) => Fingerprint::JSON_WITHOUT,
        };
        if json::digest(&root, selection, &mut digest).is_ok() {
            return Ok(Fingerprint::from_parts(scheme, digest.finish()));
        }
        let mut digest = head;
        digest.part(body);
        Ok(Fingerprint::from_parts(Fingerprint::JSON_BYTES, digest.finish()))
    }
}

#[cfg(any(feature = "json", feature = "form"))]
fn invalid(what: &'static str) -> Refusal {
    Refusal::BodyInvalid { detail: std::borrow::Cow::Borrowed(what) }
}

impl fmt::Debug for FingerprintExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            FingerprintKind::Bytes => "fingerprint::bytes()",
            FingerprintKind::Off => "fingerprint::off()",
            FingerprintKind::Closure(_) => "fingerprint::from_fn(..)",
            #[cfg(feature = "json")]
            FingerprintKind::Json(ref selection) => match **selection {
                Selection::Only(_) => "fingerprint::json_only(..)",
                _ => "fingerprint::json()",
            },
            #[cfg(feature = "form")]
            FingerprintKind::Form(_) => "fingerprint::form()",
        })
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, header::CONTENT_TYPE};

    use super::*;

    #[cfg(any(feature = "json", feature = "form"))]
    fn of(extractor: &FingerprintExtractor, content_type: &str, body: &str) -> Fingerprint {
        let request = Request::post("/").header(CONTENT_TYPE, content_type).body(Bytes::from(body.to_owned())).unwrap();
        let (parts, body) = request.into_parts();
        extractor.of(&parts, &body).unwrap()
    }

    #[test]
    fn named_headers_count() {
        let name = |name| HeaderName::from_static(name);
        let by_tenant = bytes().with_headers([name("x-tenant")]).with_headers([name("x-api-version")]);
        let of = |headers: &[(&str, &str)]| {
            let request =
                headers.iter().fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
            let (parts, body) = request.body(Bytes::new()).unwrap().into_parts();
            by_tenant.of(&parts, &body).unwrap()
        };
        assert_eq!(of(&[("x-tenant", "a"), ("x-other", "1")]), of(&[("x-tenant", "a")]));
        let apart = [
            of(&[]),
            of(&[("x-tenant", "")]),
            of(&[("x-tenant", "a")]),
            of(&[("x-tenant", "b")]),
            of(&[("x-api-version", "a")]),
            of(&[("x-tenant", "a"), ("x-tenant", "b")]),
        ];
        assert!(apart.iter().enumerate().all(|(at, one)| !apart[at + 1..].contains(one)));
        let (parts, body) = Request::post("/").body(Bytes::new()).unwrap().into_parts();
        assert_ne!(bytes().of(&parts, &body), by_tenant.of(&parts, &body));
    }

    #[test]
    #[should_panic(expected = "fingerprint::off().with_headers(..)")]
    fn off_compares_no_headers() {
        let _ = off().with_headers([CONTENT_TYPE]);
    }

    #[cfg(feature = "json")]
    #[test]
    fn fields_of_json_are_left_out() {
        let json = json().without_fields(["/sign"]).without_fields(["/at"]);
        let of = |body| of(&json, "application/json", body);
        assert_eq!(of(r#"{"a":1,"at":1,"sign":"x"}"#), of(r#"{"a":1,"at":2}"#));
        assert_ne!(of(r#"{"a":1,"at":1}"#), of(r#"{"a":2,"at":1}"#));
    }

    #[cfg(feature = "form")]
    #[test]
    fn fields_of_forms_are_left_out() {
        let form = form().without_fields(["sign", "timestamp"]);
        let of = |body| of(&form, "application/x-www-form-urlencoded", body);
        assert_eq!(of("a=1&sign=x&timestamp=1"), of("timestamp=2&sign=y&a=1"));
        assert_ne!(of("a=1&sign=x"), of("a=2&sign=x"));
    }

    #[cfg(feature = "json")]
    #[test]
    #[should_panic(expected = "fingerprint::json_only(..).without_fields(..)")]
    fn a_choice_of_fields_has_none_to_leave_out() {
        let _ = json_only(["/a"]).without_fields(["/b"]);
    }
}
