//! Form bodies: `application/x-www-form-urlencoded` and `multipart/form-data`.

use std::{
    borrow::Cow,
    convert::Infallible,
    future::{Future, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_util::stream::{Stream, once};
use http::{HeaderMap, request::Parts};
use multer::{Constraints, Multipart, SizeLimit};

use super::{
    media,
    pairs::{self, MOST_FIELDS},
};
use crate::value::{CompactDigest, KeyError};

const NOT_MULTIPART: &str = "the body is not multipart/form-data of at most 1000 fields";

/// Returns the key in the field `wanted` of a body that has to be a form.
pub(crate) fn key(parts: &Parts, body: &Bytes, wanted: &str) -> Result<Option<String>, KeyError> {
    if media::boundary(&parts.headers).is_none() && !media::is_urlencoded(&parts.headers) {
        return Err(KeyError::malformed("the body is no form, and the key is a field of one"));
    }
    field(parts, body, wanted)
}

/// Returns the text of the field `wanted`; `None` if the body is not a form.
pub(crate) fn field(parts: &Parts, body: &Bytes, wanted: &str) -> Result<Option<String>, KeyError> {
    let Some(boundary) = media::boundary(&parts.headers) else {
        return Ok(pairs::field(&parts.headers, body, wanted)?.map(Cow::into_owned));
    };
    let fields = fields(body, boundary).ok_or(KeyError::Malformed(NOT_MULTIPART.into()))?;
    let mut named = fields.into_iter().filter(|field| field.name.as_deref() == Some(wanted));
    let Some(field) = named.next() else { return Ok(None) };
    if named.next().is_some() {
        return Err(KeyError::Repeated);
    }
    let value = String::from_utf8(field.data.into()).map_err(|_| KeyError::malformed("the key is not UTF-8"))?;
    Ok(Some(value))
}

/// Returns the first field of this name in a `multipart/form-data` body. The body is read no further than that.
pub(crate) async fn first_field(
    headers: &HeaderMap,
    body: impl Stream<Item = Result<Bytes, Infallible>> + Send,
    wanted: &str,
) -> Result<Option<String>, KeyError> {
    let boundary = media::boundary(headers).and_then(|boundary| std::str::from_utf8(boundary).ok());
    let mut multipart = Multipart::new(body, boundary.ok_or(KeyError::Malformed(NOT_MULTIPART.into()))?);
    // A body that is torn, or goes on beyond what is looked at, has no such field.
    while let Ok(Some(field)) = multipart.next_field().await {
        if field.name() == Some(wanted) {
            let Ok(data) = field.bytes().await else { return Ok(None) };
            let value = String::from_utf8(data.into()).map_err(|_| KeyError::malformed("the key is not UTF-8"))?;
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Feeds the fields to `digest`, except for those named in `without`. The order counts between fields of one name, but
/// not between different names. `Err` states what is wrong with the body.
pub(crate) fn digest(
    parts: &Parts,
    body: &Bytes,
    without: &[Box<str>],
    digest: &mut CompactDigest,
) -> Result<(), &'static str> {
    let mut fields = match media::boundary(&parts.headers) {
        Some(boundary) => fields(body, boundary).ok_or(NOT_MULTIPART)?,
        None if !media::is_urlencoded(&parts.headers) => return Err("the body is no form"),
        None if pairs::are_too_many(body) => return Err(pairs::TOO_MANY),
        None => pairs::pairs(body).map(Field::of_pair).collect(),
    };
    fields.retain(|field| !without.iter().any(|name| field.name.as_deref() == Some(name)));
    // Stable, so that rows stay in the order in which they were sent.
    fields.sort_by(|one, other| (&one.name, &one.raw_name).cmp(&(&other.name, &other.raw_name)));
    digest.length(without.len());
    for name in without {
        digest.part(name.as_bytes());
    }
    digest.length(fields.len());
    for field in &fields {
        digest.part(field.name.as_deref().unwrap_or_default().as_bytes());
        digest.part(field.raw_name.as_ref());
        digest.part(field.about.as_bytes());
        digest.part(&field.data);
    }
    Ok(())
}

/// A field of a form.
struct Field {
    name: Option<String>,
    /// A name that is not UTF-8.
    raw_name: Vec<u8>,
    /// File name and media type, of a file.
    about: String,
    data: Bytes,
}

impl Field {
    fn of_pair((name, value): (&[u8], &[u8])) -> Self {
        let data = Bytes::from(pairs::decode(value).into_owned());
        let (name, raw_name) = match String::from_utf8(pairs::decode(name).into_owned()) {
            Ok(name) => (Some(name), Vec::new()),
            Err(error) => (None, error.into_bytes()),
        };
        Self { name, raw_name, about: String::new(), data }
    }
}

/// Returns the fields of a `multipart/form-data` body; `None` if the body is of another type, or has too many fields.
fn fields(body: &Bytes, boundary: &[u8]) -> Option<Vec<Field>> {
    let boundary = std::str::from_utf8(boundary).ok()?;
    let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(body.len() as u64));
    let stream = once(ready(Ok::<_, Infallible>(body.clone())));
    let mut multipart = Multipart::with_constraints(stream, boundary, constraints);
    let mut fields = Vec::new();
    while let Some(field) = at_once(multipart.next_field())?.ok()? {
        if fields.len() == MOST_FIELDS {
            return None;
        }
        let name = field.name().map(ToOwned::to_owned);
        let media_type = field.content_type().map(ToString::to_string);
        let about = format!("{:?}", (field.file_name(), media_type));
        fields.push(Field { name, raw_name: Vec::new(), about, data: at_once(field.bytes())?.ok()? });
    }
    Some(fields)
}

/// Polls a future once. The parser is made for streams; if the whole body is there, it never has to wait.
fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, header::CONTENT_TYPE};

    use super::*;

    const URLENCODED: &str = "application/x-www-form-urlencoded";
    const MULTIPART: &str = "multipart/form-data; boundary=b";

    fn request(content_type: &str, body: &str) -> (Parts, Bytes) {
        let request = Request::post("/").header(CONTENT_TYPE, content_type);
        request.body(Bytes::from(body.to_owned())).unwrap().into_parts()
    }

    fn multipart(fields: &[(&str, &str)]) -> String {
        let field = |(name, value): &(&str, &str)| {
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        fields.iter().map(field).collect::<String>() + "--b--\r\n"
    }

    fn id(content_type: &str, body: &str) -> Result<Option<String>, KeyError> {
        let (parts, body) = request(content_type, body);
        key(&parts, &body, "id")
    }

    #[test]
    fn keys() {
        assert_eq!(id(URLENCODED, "a=1&id=x+y"), Ok(Some("x y".into())));
        assert_eq!(id(MULTIPART, &multipart(&[("a", "1"), ("id", "x y")])), Ok(Some("x y".into())));
        assert_eq!(id(MULTIPART, &multipart(&[("a", "1")])), Ok(None));
        assert_eq!(id(MULTIPART, &multipart(&[("id", "1"), ("id", "1")])), Err(KeyError::Repeated));
        let whole = multipart(&[("id", "1")]);
        for torn in ["", "id=1", &whole[..whole.len() - 4], &whole[..20]] {
            assert!(!matches!(id(MULTIPART, torn), Ok(Some(_))), "{torn:?}");
        }
    }

    #[test]
    fn a_key_is_a_field_of_a_form() {
        for content_type in ["application/json", "text/plain", ""] {
            assert!(matches!(id(content_type, "id=1"), Err(KeyError::Malformed(_))), "{content_type}");
            let (parts, body) = request(content_type, "id=1");
            assert_eq!(field(&parts, &body, "id"), Ok(None), "{content_type}");
        }
        assert_eq!(id("Application/X-WWW-Form-Urlencoded;charset=utf-8", "id=1"), Ok(Some("1".into())));
    }

    #[test]
    fn fields_are_bounded() {
        let fields = |count: usize| "a&".repeat(count - 1) + "id=1";
        assert_eq!(id(URLENCODED, &fields(MOST_FIELDS)), Ok(Some("1".into())));
        assert_eq!(id(URLENCODED, &fields(MOST_FIELDS + 1)), Err(KeyError::malformed(pairs::TOO_MANY)));
        assert!(of(URLENCODED, &fields(MOST_FIELDS)).is_ok());
        assert_eq!(of(URLENCODED, &fields(MOST_FIELDS + 1)), Err(pairs::TOO_MANY));
        let many = multipart(&vec![("a", "1"); MOST_FIELDS + 1]);
        assert!(id(MULTIPART, &many).is_err());
        assert!(of(MULTIPART, &many).is_err());
    }

    fn of(content_type: &str, body: &str) -> Result<[u8; 32], &'static str> {
        let (parts, body) = request(content_type, body);
        let mut out = CompactDigest::new();
        digest(&parts, &body, &[], &mut out).map(|()| out.finish())
    }

    #[test]
    fn the_order_of_rows_counts() {
        let (one, two) = ("item=a&quantity=1&item=b&quantity=2", "item=a&quantity=2&item=b&quantity=1");
        assert_ne!(of(URLENCODED, one), of(URLENCODED, two));
        // The same rows, column by column.
        assert_eq!(of(URLENCODED, one), of(URLENCODED, "quantity=1&quantity=2&item=a&item=b"));
        let rows = |first: &str, second: &str| multipart(&[("quantity", first), ("quantity", second)]);
        assert_ne!(of(MULTIPART, &rows("1", "2")), of(MULTIPART, &rows("2", "1")));
    }

    #[test]
    fn the_order_of_names_does_not_count() {
        assert_eq!(of(URLENCODED, "a=1&b=x+y"), of(URLENCODED, "b=x%20y&a=1"));
        assert_ne!(of(URLENCODED, "a=1&b=2"), of(URLENCODED, "a=2&b=1"));
        assert_ne!(of(URLENCODED, "a=1"), of(URLENCODED, "a=1&a=1"));
        assert_ne!(of(URLENCODED, "a=1&b=2"), of(URLENCODED, "a=1%26b=2"));
        assert_ne!(of(URLENCODED, "%ff=1"), of(URLENCODED, "%fe=1"));
        let (one, two) = (multipart(&[("a", "1"), ("b", "2")]), multipart(&[("b", "2"), ("a", "1")]));
        assert_eq!(of(MULTIPART, &one), of(MULTIPART, &two));
        assert_ne!(of(MULTIPART, &one), of(MULTIPART, &multipart(&[("a", "2"), ("b", "1")])));
        assert!(of("application/json", "{}").is_err());
        assert!(of(MULTIPART, "a=1").is_err());
    }
}
