//! Keys in a header.

use proptest::{collection::vec, prelude::*};
use tower_idempotency::key;

use crate::hostile_input::probe::{KEY, Outcome, cases, layer, outcome, post};

/// Bytes as they may stand in a field, with those that mean something more often.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(b"\"\\,;= \t:?@%*.-aZ019".to_vec()),
        2 => 0x21..0x7f_u8,
        1 => any::<u8>(),
    ];
    vec(byte, 0..100)
}

fn text() -> impl Strategy<Value = String> {
    vec(0x20..0x7f_u8, 1..=255).prop_map(|bytes| String::from_utf8(bytes).unwrap())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn parameters() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just(String::new()),
        text().prop_map(|text| format!("={}", quoted(&text))),
        (-999_999_999_999_999..=999_999_999_999_999_i64).prop_map(|number| format!("={number}")),
        "=[a-zA-Z*][a-z!#$%&'*+.^_`|~:/-]{0,9}",
        "=:([a-zA-Z0-9+/]{4}){0,2}([a-zA-Z0-9+/]{2,3}=?)?:",
        "=\\?[01]",
    ];
    vec(("; {0,3}[a-z*][a-z0-9_.*-]{0,9}", value), 0..4)
        .prop_map(|all| all.into_iter().map(|(name, value)| name + &value).collect())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_bytes_are_a_key_or_refused(bytes in field(), quote in any::<bool>(), strict in any::<bool>()) {
        let field = if quote { [b"\"", &bytes[..], b"\""].concat() } else { bytes };
        let by_header = key::header("Idempotency-Key");
        let layer = layer().key(if strict { by_header.strict() } else { by_header });
        if let Some(request) = post("/", &[(KEY, &field)], "") {
            let seen = outcome(&layer, request);
            prop_assert!(seen.is_right() && seen != Outcome::refused("key-missing"), "{seen:?}");
            if let Some(key) = seen.key() {
                prop_assert!(key.bytes().all(|byte| matches!(byte, 0x20..0x7f)), "{key:?}");
            }
        }
    }

    #[test]
    fn a_string_is_its_text(text in text(), parameters in parameters(), strict in any::<bool>()) {
        let by_header = key::header("Idempotency-Key");
        let layer = layer().key(if strict { by_header.strict() } else { by_header });
        let field = format!("  {}{parameters} ", quoted(&text));
        let seen = outcome(&layer, post("/", &[(KEY, field.as_bytes())], "").unwrap());
        prop_assert_eq!(seen.key(), Some(text.as_str()), "{}", field);
    }

    #[test]
    fn both_forms_are_one_operation(text in "[!#-+\\--:<-\\[\\]-~]{1,255}") {
        let run = |field: &str| outcome(&layer(), post("/", &[(KEY, field.as_bytes())], "").unwrap());
        let bare = run(&text);
        prop_assert_eq!(bare.key(), Some(text.as_str()));
        prop_assert_eq!(&bare, &run(&quoted(&text)));
    }

    #[test]
    fn several_lines_are_none(lines in vec(field(), 2..4)) {
        let fields: Vec<_> = lines.iter().map(|line| (KEY, &line[..])).collect();
        if let Some(request) = post("/", &fields, "") {
            prop_assert_eq!(outcome(&layer(), request), Outcome::refused("key-invalid"));
        }
    }
}
