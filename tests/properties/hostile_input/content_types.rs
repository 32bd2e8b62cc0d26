//! Content types, as far as they say what is the same request.

use axum::http::header::CONTENT_TYPE;
use proptest::{collection::vec, prelude::*};

use crate::hostile_input::probe::{KEY, ask, cases, layer, post};

/// Whether a second request, of another content type or body, passes for the first.
fn same(first: (&[u8], &[u8]), second: (&[u8], &[u8])) -> Option<bool> {
    let layer = layer();
    let request =
        |(content_type, body): (&[u8], &[u8])| post("/", &[(KEY, b"k"), (CONTENT_TYPE, content_type)], body.to_vec());
    let (first, second) = (request(first)?, request(second)?);
    assert_eq!(ask(&layer, first).0.status, 200);
    let (seen, _) = ask(&layer, second);
    assert!(seen.replayed || seen.problem() == "key-reused", "{seen:?}");
    Some(seen.replayed)
}

#[test]
fn the_media_type_counts_and_its_parameters_do_not() {
    for (first, second, expected) in [
        ("text/plain", "text/plain", true),
        ("text/plain", "Text/PLAIN ; charset=utf-8", true),
        ("text/plain; a=\"caf\u{e9}\"", "text/plain; a=\"the\u{e9}\"", true),
        ("text/plain; a=\"caf\u{e9}\"", "text/plain", true),
        ("text/plain; a=\"caf\u{e9}\"", "text/html; a=\"caf\u{e9}\"", false),
        ("caf\u{e9}/a", "caf\u{e9}/b", false),
        ("text/plain", "text/html", false),
        ("text/plain", "", false),
        ("multipart/form-data", "multipart/form-data; boundary=b", true),
        ("multipart/mixed; boundary=b", "multipart/form-data; boundary=b", false),
        // A parameter that only sounds like it.
        ("multipart/form-data; xboundary=b", "multipart/form-data; boundary=c", true),
    ] {
        assert_eq!(same((first.as_bytes(), b"body"), (second.as_bytes(), b"body")), Some(expected), "{first} {second}");
    }
}

fn content_type() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec!["multipart/form-data", ";", "boundary=", "\"", "b", " ", "=", "--", "\\"])
            .prop_map(|piece| piece.as_bytes().to_vec()),
        vec(any::<u8>(), 0..4),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_content_type_and_body_are_equal_to_themselves_alone(
        content_type in content_type(),
        body in "(--|b|\r\n|\n|x){0,20}",
        other in "(--|b|\r\n|\n|x){0,20}",
    ) {
        let (body, other) = (body.as_bytes(), other.as_bytes());
        if let Some(same_as_itself) = same((&content_type, body), (&content_type, body)) {
            prop_assert!(same_as_itself);
            prop_assert_eq!(same((&content_type, body), (&content_type, other)), Some(body == other));
        }
    }
}
