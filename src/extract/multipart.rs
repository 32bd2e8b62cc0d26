//! Bodies of `multipart/form-data`, as far as a fingerprint has to know them.

/// The boundary of a `multipart/form-data` media type (RFC 7578, RFC 2046 section 5.1.1).
pub(super) fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let mut parts = content_type.split(|&byte| byte == b';');
    if !parts.next()?.trim_ascii().eq_ignore_ascii_case(b"multipart/form-data") {
        return None;
    }
    parts.find_map(|parameter| {
        let equals = parameter.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        (name.eq_ignore_ascii_case(b"boundary") && !value.is_empty()).then_some(value)
    })
}

/// The body in pieces, with each delimiter's boundary taken out. A delimiter begins a line.
///
/// A client draws a new boundary for every try. Two bodies have the same pieces only where they differ in nothing else.
pub(super) fn pieces<'a>(body: &'a [u8], boundary: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(body);
    let mut at_start = true;
    std::iter::from_fn(move || {
        let current = rest?;
        let found = delimiter(current, boundary, at_start);
        at_start = false;
        rest = found.map(|at| &current[at + boundary.len()..]);
        Some(found.map_or(current, |at| &current[..at]))
    })
}

/// Where the boundary of the next delimiter begins, behind its two dashes.
fn delimiter(body: &[u8], boundary: &[u8], at_start: bool) -> Option<usize> {
    let is_boundary = |at: usize| body[at..].starts_with(boundary);
    if at_start && body.starts_with(b"--") && is_boundary(2) {
        return Some(2);
    }
    let mut from = 0;
    loop {
        let dashes = from + body[from..].iter().position(|&byte| byte == b'\n')? + 1;
        if body[dashes..].starts_with(b"--") && is_boundary(dashes + 2) {
            return Some(dashes + 2);
        }
        from = dashes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(body: &'a str, boundary: &'a str) -> Vec<&'a str> {
        pieces(body.as_bytes(), boundary.as_bytes()).map(|piece| std::str::from_utf8(piece).unwrap()).collect()
    }

    #[test]
    fn boundaries() {
        for (content_type, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("Multipart/Form-Data;charset=utf-8;Boundary=\"a b\"", Some("a b")),
            ("multipart/form-data; a=\"\u{e9}\"; boundary=abc", Some("abc")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("application/json; boundary=abc", None),
        ] {
            assert_eq!(boundary(content_type.as_bytes()), expected.map(str::as_bytes), "{content_type}");
        }
    }

    #[test]
    fn the_boundary_is_taken_out_where_it_delimits() {
        let body = |b: &str| format!("--{b}\r\nname=a\r\n\r\n7 b1 --b1\r\n--{b}--\r\n");
        let (one, two) = (body("b1"), body("b22"));
        assert_eq!(of(&one, "b1"), of(&two, "b22"));
        assert_eq!(of(&one, "b1").len(), 3);
        assert_ne!(of(&one, "b1"), of(&one, "b22"));
        assert_eq!(of("", "b"), [""]);
    }
}
