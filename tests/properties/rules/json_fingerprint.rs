//! Fingerprints of JSON: what is one value, and what is another.

use tower_idempotency::fingerprint;

use super::{
    choices::Choices,
    json_value::Json,
    probe::{are_one, post},
};

const ONLY: [(&str, &[&str]); 3] = [("/a", &["a"]), ("/b/0", &["b", "0"]), ("/id/x~1y", &["id", "x/y"])];
const EXCEPT: [(&str, &[&str]); 4] = [("/a/b", &["a", "b"]), ("/b/1", &["b", "1"]), ("/id", &["id"]), ("/0", &["0"])];

/// A value spelled in two ways, and another one that is almost the same.
pub fn by_value(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let value = Json::draw(&mut choices, 4);
    let mut other = value.clone();
    other.change(&mut choices);
    assert_ne!(value, other);
    let text = value.spell(&mut choices);
    for second in [&value, &other] {
        let again = second.spell(&mut choices);
        compare(&text, &again, value == *second, parts(&value) == parts(second), rest(&value) == rest(second));
    }
    repeated(&text, &other.spell(&mut choices));
}

fn compare(first: &str, second: &str, all: bool, only: bool, except: bool) {
    let one = |fingerprint| are_one(fingerprint, post(first.to_owned()), post(second.to_owned()));
    assert_eq!(one(fingerprint::json()), Some(all), "{first} {second}");
    assert_eq!(one(fingerprint::json_only(ONLY.map(|(pointer, _)| pointer))), Some(only), "{first} {second}");
    assert_eq!(
        one(fingerprint::json().without_fields(EXCEPT.map(|(pointer, _)| pointer))),
        Some(except),
        "{first} {second}"
    );
}

fn parts(value: &Json) -> Vec<Option<&Json>> {
    ONLY.iter().map(|(_, way)| value.find(way)).collect()
}

fn rest(value: &Json) -> Json {
    value.without(&EXCEPT.map(|(_, way)| way))
}

/// A body with a repeated member is one with itself and with nothing else.
fn repeated(one: &str, other: &str) {
    let twice = format!("{{\"a\":{{\"m\":{one},\"\\u006d\":{other}}}}}");
    let plain = format!("{{\"a\":{{\"m\":{one}}}}}");
    let swapped = format!("{{\"a\":{{\"m\":{other},\"m\":{one}}}}}");
    compare(&twice, &twice, true, true, true);
    for unlike in [plain, swapped, format!("{twice} ")] {
        compare(&twice, &unlike, false, false, false);
        compare(&unlike, &twice, false, false, false);
    }
}

/// Any body: refused or one with itself, and refused only if it is not JSON.
pub fn any_body(body: &[u8]) {
    let is_json = serde_json::from_slice::<serde_json::Value>(body).is_ok();
    let one = are_one(fingerprint::json(), post(body.to_vec()), post(body.to_vec()));
    assert!(one == Some(true) || (one.is_none() && !is_json), "{one:?}");
    let spaced = [b" ", body, b"\n"].concat();
    let one = are_one(fingerprint::json(), post(body.to_vec()), post(spaced));
    assert!(one.is_some() || !is_json, "{one:?}");
}
