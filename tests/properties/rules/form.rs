//! Keys and fingerprints of `application/x-www-form-urlencoded` bodies, against another parser.

use form_urlencoded::Serializer;
use tower_idempotency::{fingerprint, key};

use super::probe::{Told, are_one, told, typed};

const TYPE: &str = "application/x-www-form-urlencoded";

/// What a parser puts in place of bytes that are not UTF-8.
const NOT_TEXT: char = '\u{fffd}';

pub fn key(body: &[u8]) {
    let told = told(key::form("id"), typed(TYPE, body.to_vec()));
    if has_too_many_fields(body) {
        return assert_eq!(told, Told::Invalid);
    }
    let ids: Vec<_> = form_urlencoded::parse(body).filter(|(name, _)| name == "id").map(|(_, value)| value).collect();
    let expected = match &ids[..] {
        [] => Told::Missing,
        [id] => Told::of(id),
        _ => Told::Invalid,
    };
    let is_text = !ids.iter().any(|id| id.contains(NOT_TEXT));
    assert!(told == expected || (told == Told::Invalid && !is_text), "{told:?} {expected:?}");
}

pub fn fingerprint(body: &[u8]) {
    let one = |second: &[u8]| are_one(fingerprint::form(), typed(TYPE, body.to_vec()), typed(TYPE, second.to_vec()));
    if has_too_many_fields(&[body, b"&more"].concat()) {
        return;
    }
    let mut pairs: Vec<_> = body.split(|byte| *byte == b'&').collect();
    pairs.reverse();
    let backwards = one(&pairs.join(&b'&')) == Some(by_name(body) == by_name(&pairs.join(&b'&')));
    assert_eq!(one(&[body, b"&more"].concat()), Some(false));
    if let Some(at) = pairs.iter().position(|pair| !pair.is_empty()) {
        pairs.remove(at);
        assert_eq!(one(&pairs.join(&b'&')), Some(false));
    }
    let read: Vec<_> = form_urlencoded::parse(body).collect();
    let spelled = Serializer::new(String::new()).extend_pairs(&read).finish();
    let is_text = !read.iter().any(|(name, value)| name.contains(NOT_TEXT) || value.contains(NOT_TEXT));
    assert!(backwards || !is_text, "{body:?}");
    let same = one(spelled.as_bytes());
    assert!(same == Some(true) || !is_text, "{spelled}");
}

/// The fields by their names, those of one name in their order.
fn by_name(body: &[u8]) -> Vec<(String, String)> {
    let mut fields: Vec<_> = form_urlencoded::parse(body).into_owned().collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}

fn has_too_many_fields(body: &[u8]) -> bool {
    body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).count() > 1_000
}
