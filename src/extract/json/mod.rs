//! JSON bodies: read whole, with numbers as they are written and repeated members kept apart.
//!
//! - `scan`: a parser of our own, which keeps numbers as they are written and repeated members apart.
//! - `canonical`: the digest of a value, independent of the order of members and of spaces. `number`: numbers with the
//!   same value.
//! - `pointer`: JSON pointers (RFC 6901).

mod canonical;
mod number;
mod pointer;
mod scan;

use std::borrow::Cow;

use crate::value::KeyError;

pub(super) use self::{
    canonical::{Selection, digest},
    pointer::Pointer,
};

/// How deep a body may be nested, as in `serde_json` itself.
const DEPTH: usize = 128;

/// How many values a body may have in it, itself included. Each takes up to 56 bytes while a body is read, and in a
/// body that consists of brackets only it is 2 bytes long.
const MOST_VALUES: usize = 50_000;

/// A JSON value that borrows from its text. Members are in the order of the text, repeated ones too.
#[derive(Debug, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Reads a body. `Err` states what is wrong with it, for the client.
pub(super) fn parse(body: &[u8]) -> Result<Node<'_>, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8")?;
    // The grammar is checked by a parser that is known to be right; what follows may rely on it.
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|_| "the body is not JSON")?;
    scan::scan(text)
        .ok_or("the body is JSON that is nested too deep, has more than 50000 values or half of a surrogate pair in it")
}

/// Returns the key that `pointer` leads to: a string or an integer.
pub(super) fn key(body: &[u8], pointer: &Pointer) -> Result<Option<String>, KeyError> {
    let root = parse(body).map_err(KeyError::malformed)?;
    match pointer.find(&root).map_err(|_| KeyError::Repeated)? {
        None => Ok(None),
        Some(Node::String(text)) => Ok(Some(text.clone().into_owned())),
        Some(Node::Number(text)) if number::is_integer(text) => Ok(Some((*text).to_owned())),
        Some(_) => Err(KeyError::malformed("the key is neither a JSON string nor an integer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_at(pointer: &str, body: &str) -> Result<Option<String>, KeyError> {
        key(body.as_bytes(), &Pointer::parse(pointer).unwrap())
    }

    #[test]
    fn keys() {
        let body = r#"{"no":"é\"7","deep":[{"id":9007199254740993}],"big":123456789012345678901234567890,"":"e"}"#;
        assert_eq!(key_at("/no", body), Ok(Some("é\"7".into())));
        assert_eq!(key_at("/deep/0/id", body), Ok(Some("9007199254740993".into())));
        assert_eq!(key_at("/big", body), Ok(Some("123456789012345678901234567890".into())));
        assert_eq!(key_at("/", body), Ok(Some("e".into())));
        for absent in ["/none", "/deep/1/id", "/deep/00/id", "/deep/-", "/no/x"] {
            assert_eq!(key_at(absent, body), Ok(None), "{absent}");
        }
        assert_eq!(key_at("", "\"whole\""), Ok(Some("whole".into())));
    }

    #[test]
    fn what_is_no_key() {
        for value in ["1.0", "1e3", "-0", "true", "null", "{}", "[1]", "1.5"] {
            assert!(key_at("/id", &format!("{{\"id\":{value}}}")).is_err(), "{value}");
        }
        for body in [
            "{nope",
            "",
            "{\"id\":\"a\"} x",
            "{\"id\":\"a\",}",
            "\u{feff}{\"id\":\"a\"}",
            "{\"id\":\"\\ud800\"}",
            "{\"id\":\"a\nb\"}",
        ] {
            assert!(key_at("/id", body).is_err(), "{body:?}");
        }
        assert!(key(b"{\"id\":\"a\",\"x\":\"\xff\"}", &Pointer::parse("/id").unwrap()).is_err());
        assert_eq!(key_at("/id", r#"{"id":"a","id":"b"}"#), Err(KeyError::Repeated));
        assert_eq!(key_at("/id", r#"{"id":"a","\u0069d":"a"}"#), Err(KeyError::Repeated));
        assert_eq!(key_at("/a/id", r#"{"a":{},"a":{"id":"b"}}"#), Err(KeyError::Repeated));
        // Repeated elsewhere: no matter to the key.
        assert_eq!(key_at("/id", r#"{"id":"a","x":1,"x":2}"#), Ok(Some("a".into())));
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_crash() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(DEPTH).as_bytes()).is_ok());
        for depth in [DEPTH + 1, 100_000] {
            assert!(parse(nested(depth).as_bytes()).is_err(), "{depth}");
        }
        let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert!(parse(objects.as_bytes()).is_err());
    }

    #[test]
    fn values_are_bounded() {
        let of = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
        assert!(parse(of(MOST_VALUES).as_bytes()).is_ok());
        let more = of(MOST_VALUES + 1);
        assert!(parse(more.as_bytes()).is_err());
        assert!(matches!(key_at("/id", &more), Err(KeyError::Malformed(_))));
    }
}
