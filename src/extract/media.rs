//! The media type of a request.

use http::{HeaderMap, header::CONTENT_TYPE};

/// The media type without its parameters; empty where there is none.
pub(super) fn essence(headers: &HeaderMap) -> &str {
    content_type(headers).split(';').next().unwrap_or_default().trim()
}

/// The boundary of a `multipart/form-data` body (RFC 7578; RFC 2046, section 5.1.1).
pub(super) fn boundary(headers: &HeaderMap) -> Option<&str> {
    let (media_type, parameters) = content_type(headers).split_once(';')?;
    if !media_type.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        (name.trim().eq_ignore_ascii_case("boundary") && !value.is_empty()).then_some(value)
    })
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries() {
        let of = |content_type: &str| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type.parse().unwrap())]);
            boundary(&headers).map(ToOwned::to_owned)
        };
        assert_eq!(of("multipart/form-data; boundary=abc").as_deref(), Some("abc"));
        assert_eq!(of("Multipart/Form-Data;charset=utf-8;Boundary=\"a b\"").as_deref(), Some("a b"));
        assert_eq!(of("multipart/form-data"), None);
        assert_eq!(of("multipart/form-data; boundary="), None);
        assert_eq!(of("application/json; boundary=abc"), None);
    }
}
