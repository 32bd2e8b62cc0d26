//! An honest retry of a form draws a new boundary, and nothing else.

use axum::http::header::CONTENT_TYPE;
use proptest::{collection::vec, prelude::*, sample::Index};

use crate::hostile_input::probe::{KEY, ask, cases, layer, post};

#[derive(Clone, Debug)]
struct Form {
    preamble: Vec<u8>,
    parts: Vec<Vec<u8>>,
    epilogue: Vec<u8>,
}

impl Form {
    fn body(&self, boundary: &str) -> Vec<u8> {
        let mut body = self.preamble.clone();
        for (number, part) in self.parts.iter().enumerate() {
            let line_break = if number == 0 && body.is_empty() { "" } else { "\r\n" };
            body.extend_from_slice(format!("{line_break}--{boundary}\r\n").as_bytes());
            body.extend_from_slice(part);
        }
        body.extend_from_slice(format!("\r\n--{boundary}--").as_bytes());
        body.extend_from_slice(&self.epilogue);
        body
    }

    /// A client takes a boundary that its content does not have.
    fn has(&self, boundary: &str) -> bool {
        let text = [&self.preamble[..], &self.parts.concat(), &self.epilogue].concat();
        text.windows(boundary.len()).any(|bytes| bytes == boundary.as_bytes())
    }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec!["\r\n", "\n", "--", "\r\n--", "Content-Disposition: form-data; name=\"a\"\r\n\r\n"])
            .prop_map(|piece| piece.as_bytes().to_vec()),
        vec(any::<u8>(), 0..6),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn form() -> impl Strategy<Value = Form> {
    (text(), vec(text(), 1..4), text()).prop_map(|(preamble, parts, epilogue)| Form { preamble, parts, epilogue })
}

/// RFC 2046, section 5.1.1.
fn boundary() -> impl Strategy<Value = String> {
    "[0-9a-zA-Z'()+_,./:=? -]{3,69}[0-9a-zA-Z'()+_,./:=?-]"
}

fn same(first: (&str, Vec<u8>), second: (&str, Vec<u8>)) -> bool {
    let layer = layer();
    let [first, second] = [first, second].map(|(boundary, body)| {
        let content_type = format!("multipart/form-data; charset=utf-8; boundary=\"{boundary}\"");
        ask(&layer, post("/", &[(KEY, b"k"), (CONTENT_TYPE, content_type.as_bytes())], body).unwrap()).0
    });
    assert!(first.status == 200 && !first.replayed);
    assert!(second.replayed || second.problem() == "key-reused");
    second.replayed
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn a_new_boundary_is_the_same_request(form in form(), one in boundary(), other in boundary()) {
        prop_assume!(!form.has(&one) && !form.has(&other));
        prop_assert!(same((&one, form.body(&one)), (&other, form.body(&other))));
    }

    #[test]
    fn another_byte_anywhere_is_another_request(form in form(), one in boundary(), at in any::<Index>(), flip in 1..=255_u8) {
        let body = form.body(&one);
        let mut changed = body.clone();
        let at = at.index(body.len());
        changed[at] ^= flip;
        prop_assert!(!same((&one, body.clone()), (&one, changed)), "byte {at}");
        let mut shorter = body.clone();
        let gone = shorter.remove(at);
        prop_assert!(!same((&one, body), (&one, shorter)), "without {gone} at {at}");
    }

    #[test]
    fn other_content_is_another_request_behind_a_new_boundary_too(
        form in form(),
        (one, other) in (boundary(), boundary()),
        (part, at) in any::<(Index, Index)>(),
        flip in 1..=255_u8,
    ) {
        let mut changed = form.clone();
        let part = &mut changed.parts[part.index(form.parts.len())];
        if part.is_empty() {
            part.push(flip);
        } else {
            let at = at.index(part.len());
            part[at] ^= flip;
        }
        prop_assume!(!form.has(&one) && !changed.has(&other));
        prop_assert!(!same((&one, form.body(&one)), (&other, changed.body(&other))));
    }
}
