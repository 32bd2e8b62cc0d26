//! Keys out of JSON bodies, against a reading that goes down the way value by value.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use tower_idempotency::key;

use super::{
    choices::Choices,
    json_value::Json,
    probe::{Told, post, told},
};

const WAYS: &[(&str, &[&str])] =
    &[("/id", &["id"]), ("/data/0/id", &["data", "0", "id"]), ("/a~1b/~0", &["a/b", "~"]), ("", &[])];

/// A body that has something at the end of the paths, and then one byte of it changed.
pub fn drawn(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let [value, other] =
        [Json::draw(&mut choices, 1), Json::draw(&mut choices, 2)].map(|json| json.spell(&mut choices));
    let body = match choices.below(6) {
        0 => value,
        1 => format!("{{\"id\":{value},\"x\":{other}}}"),
        2 => format!("{{\"id\":{value},\"\\u0069d\":{other}}}"),
        3 => format!("{{\"data\":[{{\"id\":{value}}},{other}]}}"),
        4 => format!("{{\"data\":{{\"0\":{{\"id\":{value}}},\"00\":{other}}}}}"),
        _ => format!("{{\"x\":{other},\"a/b\":{{\"~\":{value}}}}}"),
    };
    any_body(body.as_bytes());
    let mut changed = body.into_bytes();
    let at = choices.below(256) % changed.len();
    changed[at] = choices.one_of(b"0aue-.\\\"{}[],: \xff");
    any_body(&changed);
}

pub fn any_body(body: &[u8]) {
    for (pointer, way) in WAYS {
        let told = told(key::json(pointer), post(body.to_vec()));
        let read = std::str::from_utf8(body).map_or(Read::NotJson, |text| read(text, way));
        // If a parser that keeps nothing back agrees that it is JSON, there is no reason to refuse it as a whole.
        let is_json = serde_json::from_slice::<serde_json::Value>(body).is_ok();
        let expected = match &read {
            Read::Key(key) => Told::of(key),
            Read::Absent => Told::Missing,
            Read::NotJson | Read::Rejected => Told::Invalid,
        };
        assert!(told == expected || (told == Told::Invalid && !is_json), "{pointer}: {told:?}, read {read:?}");
    }
}

#[derive(Debug)]
enum Read {
    NotJson,
    Absent,
    /// Repeated on the way, or neither a string nor an integer.
    Rejected,
    Key(String),
}

fn read(text: &str, way: &[&str]) -> Read {
    serde_json::from_str::<&RawValue>(text).and_then(|root| follow(root.get(), way)).unwrap_or(Read::NotJson)
}

fn follow(text: &str, way: &[&str]) -> serde_json::Result<Read> {
    let Some((token, rest)) = way.split_first() else { return value(text) };
    let named: Vec<&RawValue> = match text.as_bytes()[0] {
        b'{' => {
            let Members(members) = serde_json::from_str(text)?;
            members.into_iter().filter(|(name, _)| name == token).map(|(_, value)| value).collect()
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(text)?;
            token.parse().ok().and_then(|at: usize| elements.get(at).copied()).into_iter().collect()
        }
        _ => Vec::new(),
    };
    match named[..] {
        [] => Ok(Read::Absent),
        [one] => follow(one.get(), rest),
        _ => Ok(Read::Rejected),
    }
}

fn value(text: &str) -> serde_json::Result<Read> {
    if text.starts_with('"') {
        return serde_json::from_str(text).map(Read::Key);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_integer = digits.chars().all(|digit| digit.is_ascii_digit()) && text != "-0";
    Ok(if is_integer { Read::Key(text.to_owned()) } else { Read::Rejected })
}

/// The members of an object, repeated ones too.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneByOne;

        impl<'de> Visitor<'de> for OneByOne {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(OneByOne)
    }
}
