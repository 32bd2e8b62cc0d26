//! The Structured Field strings of RFC 9651 (section 4.2.5) as keys, and those of the bare form.

use tower_idempotency::key;

use crate::hostile_input::probe::{KEY, Outcome, layer, outcome, post};

/// A field's value, and its key.
const STRINGS: &[(&str, Option<&str>)] = &[
    (r#""abc""#, Some("abc")),
    (r#""a b  c""#, Some("a b  c")),
    // Between quotes, blanks are as good as other characters.
    (r#"" ""#, Some(" ")),
    (r#"  "abc"   "#, Some("abc")),
    (r#""~!#$%&'()*+,-./:;<=>?@[]^_`{|}""#, Some("~!#$%&'()*+,-./:;<=>?@[]^_`{|}")),
    (r#""\"""#, Some("\"")),
    (r#""\\""#, Some("\\")),
    (r#""\\\"\\""#, Some("\\\"\\")),
    (r#""a\\b\"c""#, Some("a\\b\"c")),
    (r#""?1""#, Some("?1")),
    (r#""abc";a"#, Some("abc")),
    (r#""abc";a=1;b="x;\"y";c=:AQI=:;d=?0"#, Some("abc")),
    (r#""abc";   a=tok/en:*"#, Some("abc")),
    (r#""abc";a=-999999999999999"#, Some("abc")),
    (r#""abc";a=123456789012.123"#, Some("abc")),
    (r#""abc";a=@1659578233"#, Some("abc")),
    (r#""abc";a=%"f%c3%bc""#, Some("abc")),
    (r#""abc";a=1;a=2"#, Some("abc")),
    (r#""""#, None),
    ("", None),
    ("   ", None),
    (r#"""#, None),
    (r#""abc"#, None),
    (r#""abc\""#, None),
    (r#""a\bc""#, None),
    (r#""a\'c""#, None),
    (r#""abc"def"#, None),
    (r#""abc" "def""#, None),
    (r#""abc", "def""#, None),
    (r#""abc","#, None),
    (r#""abc";"#, None),
    (r#""abc" ;a"#, None),
    (r#""abc";A=1"#, None),
    (r#""abc";a="#, None),
    (r#""abc";a=1."#, None),
    (r#""abc";a=1.2345"#, None),
    (r#""abc";a=1234567890123.1"#, None),
    (r#""abc";a=9999999999999999"#, None),
    (r#""abc";a=?2"#, None),
    (r#""abc";a=:A"#, None),
    (r#""abc";a= 1"#, None),
    ("\t\"abc\"", None),
    ("\"abc\"\t", None),
    ("\"a\tc\"", None),
    ("\"caf\u{e9}\"", None),
    ("\u{201c}abc\u{201d}", None),
    ("'abc'", None),
    ("(\"abc\")", None),
    (":YWJj:", None),
];

/// Text that is not a Structured Field string and is still a key, unless the layer is strict.
const BARE: &[&str] = &["abc", "'abc'", ":YWJj:", "(abc)", "?1", "1.5", "*a/b:c", "7f0c-~!#$%&*+./:<=>?@[]^_`{|}"];

const NEITHER: &[&str] = &["a b", "a,b", "a;b", "a\\b", "ab\"", "a\"b\"", "a\tb", "caf\u{e9}", ";a", ","];

fn key_of(field: &str, strict: bool) -> Outcome {
    let by_header = key::header("Idempotency-Key");
    let layer = layer().key(if strict { by_header.strict() } else { by_header });
    outcome(&layer, post("/", &[(KEY, field.as_bytes())], "").unwrap())
}

#[test]
fn strings() {
    for (field, key) in STRINGS {
        for strict in [true, false] {
            if key.is_none() && !strict && BARE.contains(field) {
                continue;
            }
            let seen = key_of(field, strict);
            assert_eq!(seen.key(), *key, "{field:?}, strict: {strict}");
            assert!(key.is_some() || !strict || seen == Outcome::refused("key-invalid"), "{field:?}: {seen:?}");
        }
    }
}

#[test]
fn bare_keys() {
    for field in BARE {
        assert_eq!(key_of(field, false).key(), Some(*field));
        assert_eq!(key_of(&format!(" {field}  "), false).key(), Some(*field));
        assert_eq!(key_of(field, true), Outcome::refused("key-invalid"), "{field:?}");
    }
    for field in NEITHER {
        assert_eq!(key_of(field, false), Outcome::refused("key-invalid"), "{field:?}");
    }
}

#[test]
fn lengths() {
    for (length, fits) in [(1, true), (255, true), (256, false), (5000, false)] {
        let text = "k".repeat(length);
        for field in [text.clone(), format!("\"{text}\""), format!("\"{text}\";a=1")] {
            assert_eq!(key_of(&field, false).key(), fits.then_some(text.as_str()), "{length}");
        }
        // An escape counts as what it stands for.
        let escaped = format!("\"{}\"", "\\\"".repeat(length));
        assert_eq!(key_of(&escaped, true).key().is_some(), fits, "{length}");
    }
}
