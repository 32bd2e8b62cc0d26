//! The media type of a request, by its bytes: a parameter may hold any.

use http::{HeaderMap, header::CONTENT_TYPE};

/// Returns the media type without its parameters; empty if there is none.
pub(crate) fn essence(headers: &HeaderMap) -> &[u8] {
    let content_type = value(headers);
    match content_type.iter().position(|byte| matches!(byte, b';' | b'"')) {
        Some(at) if content_type[at] == b'"' => parts(content_type).next().unwrap_or_default(),
        end => content_type[..end.unwrap_or(content_type.len())].trim_ascii(),
    }
}

/// Returns the boundary of a `multipart/form-data` body (RFC 7578; RFC 2046, section 5.1.1).
#[cfg(any(test, feature = "form"))]
pub(crate) fn boundary(headers: &HeaderMap) -> Option<&[u8]> {
    boundary_of(essence(headers), headers)
}

/// Returns the boundary of a body whose media type is known already.
pub(crate) fn boundary_of<'a>(essence: &[u8], headers: &'a HeaderMap) -> Option<&'a [u8]> {
    if !essence.eq_ignore_ascii_case(b"multipart/form-data") {
        return None;
    }
    parts(value(headers)).skip(1).find_map(|parameter| {
        let equals = parameter.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        (name.eq_ignore_ascii_case(b"boundary") && !value.is_empty()).then_some(value)
    })
}

/// Returns whether the body is one of `application/x-www-form-urlencoded`.
pub(crate) fn is_urlencoded(headers: &HeaderMap) -> bool {
    essence(headers).eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// Returns whether the body is one of `multipart/form-data`.
#[cfg(feature = "form")]
pub(crate) fn is_multipart(headers: &HeaderMap) -> bool {
    boundary(headers).is_some()
}

fn value(headers: &HeaderMap) -> &[u8] {
    headers.get(CONTENT_TYPE).map_or(b"", |value| value.as_bytes())
}

fn parts(content_type: &[u8]) -> impl Iterator<Item = &[u8]> {
    // A semicolon in quotes separates nothing.
    let (mut quoted, mut escaped) = (false, false);
    let separates = move |&byte: &u8| {
        let separates = byte == b';' && !quoted;
        quoted ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && quoted && !escaped;
        separates
    };
    content_type.split(separates).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn boundaries() {
        for (content_type, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("Multipart/Form-Data;charset=utf-8;Boundary=\"a b\"", Some("a b")),
            ("multipart/form-data; a=\"\u{e9}\"; boundary=abc", Some("abc")),
            ("multipart/form-data; a=\"\\\"; boundary=x;\"; boundary=abc", Some("abc")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("application/json; boundary=abc", None),
        ] {
            let value = HeaderValue::from_bytes(content_type.as_bytes()).unwrap();
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value)]);
            assert_eq!(boundary(&headers), expected.map(str::as_bytes), "{content_type}");
        }
    }
}
