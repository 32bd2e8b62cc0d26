//! `name=value` pairs of queries and of `application/x-www-form-urlencoded` bodies.

use std::borrow::Cow;

use http::HeaderMap;
use percent_encoding::percent_decode;

use super::media;
use crate::value::KeyError;

/// The most fields of a form that are looked at.
pub(in crate::extract) const MOST_FIELDS: usize = 1_000;

pub(in crate::extract) const TOO_MANY: &str = "the body has more than 1000 fields";

/// Returns each pair, still encoded.
pub(in crate::extract) fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let end = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
        (&pair[..end], pair.get(end + 1..).unwrap_or_default())
    })
}

/// Returns the one value of `wanted`, decoded.
pub(in crate::extract) fn parameter<'a>(text: &'a [u8], wanted: &str) -> Result<Option<Cow<'a, str>>, KeyError> {
    let mut values = pairs(text).filter(|(name, _)| *decode(name) == *wanted.as_bytes()).map(|(_, value)| value);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(KeyError::Repeated);
    }
    // A lossy reading would make two keys one.
    let not_text = || KeyError::malformed("the key is not UTF-8");
    match decode(value) {
        Cow::Borrowed(value) => std::str::from_utf8(value).map(Cow::Borrowed).map_err(|_| not_text()),
        Cow::Owned(value) => String::from_utf8(value).map(Cow::Owned).map_err(|_| not_text()),
    }
    .map(Some)
}

/// Returns the one value of the field `wanted`, decoded; none if the body is another than
/// `application/x-www-form-urlencoded`.
pub(in crate::extract) fn field<'a>(
    headers: &HeaderMap,
    body: &'a [u8],
    wanted: &str,
) -> Result<Option<Cow<'a, str>>, KeyError> {
    if !media::is_urlencoded(headers) {
        return Ok(None);
    }
    if are_too_many(body) {
        return Err(KeyError::malformed(TOO_MANY));
    }
    parameter(body, wanted)
}

pub(in crate::extract) fn are_too_many(body: &[u8]) -> bool {
    pairs(body).nth(MOST_FIELDS).is_some()
}

/// Decodes percent-encoding, with `+` for a blank.
pub(in crate::extract) fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    if text.contains(&b'+') {
        let blanks: Vec<_> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
        return Cow::Owned(percent_decode(&blanks).collect());
    }
    Cow::from(percent_decode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &[u8]) -> Result<Option<String>, KeyError> {
        parameter(text, "id").map(|value| value.map(Cow::into_owned))
    }

    #[test]
    fn one_parameter() {
        for (text, expected) in [
            ("", None),
            ("idx=1&i=2", None),
            ("a=1&id=x%2Fa%20b+c", Some("x/a b c")),
            ("%69d=7&&", Some("7")),
            ("id=a=b", Some("a=b")),
            ("id=", Some("")),
            ("id", Some("")),
            ("id=%zz", Some("%zz")),
        ] {
            assert_eq!(id(text.as_bytes()), Ok(expected.map(Into::into)), "{text}");
        }
        assert_eq!(id(b"id=1&id=1"), Err(KeyError::Repeated));
        assert!(id(b"id=%ff").is_err() && id(b"id=\xff").is_err());
        assert_eq!(id(b"x=\xff%ff&id=1"), Ok(Some("1".into())));
    }
}
