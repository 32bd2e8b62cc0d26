//! Keys in a header, against another parser of Structured Fields.

use http::HeaderValue;
use sfv::{BareItem, Parser};
use tower_idempotency::key;

use super::probe::{Told, post, told};

pub fn check(field: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(field) else { return };
    let ask = |extractor| {
        let mut request = post("");
        request.headers_mut().insert("x-id", value.clone());
        told(extractor, request)
    };
    let quoted = quoted(field);
    assert_eq!(ask(key::header("x-id").strict()), quoted);
    let expected = if trimmed(field).starts_with(b"\"") { quoted } else { bare(field) };
    assert_eq!(ask(key::header("x-id")), expected);
}

fn quoted(field: &[u8]) -> Told {
    match Parser::new(field).parse::<sfv::Item>().map(|item| item.bare_item) {
        Ok(BareItem::String(text)) => Told::of_quoted(text.as_str()),
        _ => Told::Invalid,
    }
}

fn bare(field: &[u8]) -> Told {
    let text = String::from_utf8_lossy(trimmed(field));
    let stands_alone = |c: char| c.is_ascii_graphic() && !"\",;\\".contains(c);
    if text.chars().all(stands_alone) { Told::of(&text) } else { Told::Invalid }
}

fn trimmed(field: &[u8]) -> &[u8] {
    let blanks = |bytes: &[u8]| bytes.len() - bytes.iter().skip_while(|byte| **byte == b' ').count();
    let field = &field[blanks(field)..];
    let end = field.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &field[..end]
}
