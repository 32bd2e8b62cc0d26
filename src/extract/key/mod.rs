//! The sources of a request's key.
//!
//! A key is business-unique: an order number, a payment's serial number, a value that the client drew once for an
//! operation and sends again on every retry. A value that is drawn anew on every try protects nothing.
//!
//! ```
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, key, scope};
//!
//! let layer = IdempotencyLayer::new(MemoryStore::new());
//! let by_header = layer.clone().key(key::header("Idempotency-Key").strict());
//! let by_order = layer.clone().key(key::path(["tenant", "id"]));
//! let by_content = layer.key(key::content()).scope(scope::cookie("session"));
//! # drop((by_header, by_order, by_content));
//! ```

mod combine;
mod extractor;
mod join;
#[cfg(feature = "axum")]
mod parameters;
mod place;
mod sources;

#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub use self::parameters::PathParameters;
#[cfg(feature = "form")]
#[cfg_attr(docsrs, doc(cfg(feature = "form")))]
pub use self::sources::form;
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub use self::sources::json;
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub use self::sources::path;
#[cfg(feature = "xml")]
#[cfg_attr(docsrs, doc(cfg(feature = "xml")))]
pub use self::sources::xml;
pub use super::into::IntoKeyExtractor;
pub use crate::value::KeyError;

pub(in crate::extract) use self::combine::CONTENT_ELSEWHERE;
pub(crate) use self::sources::field;
pub use self::{
    combine::{all, first},
    extractor::KeyExtractor,
    sources::{content, from_body, from_fn, header, query},
};

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use bytes::Bytes;
    use http::Request;

    use super::*;

    fn extract(extractor: &KeyExtractor, request: http::request::Builder) -> Result<Option<String>, KeyError> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        extractor.extract(&parts, &Bytes::new()).map(|key| key.map(Cow::into_owned))
    }

    #[test]
    fn from_a_header() {
        let by_header = header("Idempotency-Key");
        assert_eq!(extract(&by_header, Request::builder()), Ok(None));
        let one = Request::builder().header("idempotency-key", "abc");
        assert_eq!(extract(&by_header, one), Ok(Some("abc".into())));
        let two = Request::builder().header("idempotency-key", "abc").header("idempotency-key", "abc");
        assert_eq!(extract(&by_header, two), Err(KeyError::Repeated));
        let bare = Request::builder().header("idempotency-key", "abc");
        assert!(extract(&by_header.strict(), bare).is_err());
    }

    #[test]
    fn from_the_query() {
        let by_query = query("id");
        assert_eq!(extract(&by_query, Request::builder().uri("/?a=1&id=x%2Fy")), Ok(Some("x/y".into())));
        assert_eq!(extract(&by_query, Request::builder().uri("/?id=1&id=1")), Err(KeyError::Repeated));
    }

    #[test]
    fn from_the_body() {
        let first_byte = from_body(|parts, body| match (parts.method.as_str(), body.first()) {
            ("POST", Some(byte)) if byte.is_ascii_graphic() => Ok(Some(char::from(*byte).into())),
            ("POST", Some(_)) => Err(KeyError::malformed("not a letter")),
            _ => Ok(None),
        });
        let key = |method: &str, body: &'static [u8]| {
            let (parts, ()) = Request::builder().method(method).body(()).unwrap().into_parts();
            first_byte.extract(&parts, &Bytes::from_static(body)).map(|key| key.map(Cow::into_owned))
        };
        assert_eq!(key("POST", b"abc"), Ok(Some("a".into())));
        assert_eq!((key("POST", b""), key("PUT", b"abc")), (Ok(None), Ok(None)));
        assert!(key("POST", b"\n").is_err());
        assert!(first_byte.needs_body() && all([query("a"), first_byte.clone()]).needs_body());
        assert_eq!(format!("{first_byte:?}"), "key::from_body(..)");
    }

    #[test]
    fn several_parts() {
        let both = all([query("a"), query("b")]);
        let key = |uri: &str| extract(&both, Request::builder().uri(uri));
        assert_eq!(key("/?a=1&b=23"), Ok(Some("1:1,2:23,".into())));
        assert_ne!(key("/?a=1&b=23"), key("/?a=12&b=3"));
        assert_eq!(key("/?a=1"), Ok(None));
        assert_eq!(key("/?a=&b=1"), Err(KeyError::Empty));
    }

    #[test]
    fn the_first_of_several() {
        let either = first([header("x-a"), query("a")]);
        assert_eq!(extract(&either, Request::builder().header("x-a", "h").uri("/?a=q")), Ok(Some("h".into())));
        assert_eq!(extract(&either, Request::builder().uri("/?a=q")), Ok(Some("q".into())));
        assert_eq!(extract(&either, Request::builder()), Ok(None));
        assert!(extract(&either, Request::builder().header("x-a", ",").uri("/?a=q")).is_err());
    }

    #[test]
    #[should_panic(expected = "\"no blanks\" is no header name")]
    fn a_bad_header_name_is_told_at_once() {
        let _ = header("no blanks");
    }

    #[test]
    fn the_content_may_be_the_last_of_several() {
        let key = first([header("x-a"), first([query("a"), content()])]);
        assert!(key.ends_in_content() && content().ends_in_content());
        assert!(!first([header("x-a"), query("a")]).ends_in_content());
        assert_eq!(extract(&key, Request::builder().header("x-a", "h")), Ok(Some("h".into())));
        assert_eq!(extract(&key, Request::builder()), Ok(None));
    }

    #[test]
    #[should_panic(expected = "key::first([key::content(), key::header(\"x-a\")]): `key::content()` is always there")]
    fn nothing_comes_after_the_content() {
        let _ = first([content(), header("x-a")]);
    }

    #[test]
    #[should_panic(expected = "key::all([key::header(\"x-a\"), key::content()])")]
    fn the_content_is_no_part_of_a_key() {
        let _ = all([header("x-a"), content()]);
    }

    #[test]
    #[should_panic(expected = "key::content()")]
    fn strict_is_for_headers() {
        let _ = content().strict();
    }
}
