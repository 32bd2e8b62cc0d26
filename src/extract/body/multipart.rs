//! Bodies of `multipart/form-data`, as far as a fingerprint has to know them.

/// Returns the body in pieces, with each delimiter's boundary taken out. A delimiter begins a line.
///
/// A client draws a new boundary for every try. Two bodies have the same pieces only if they differ in nothing else.
pub(in crate::extract) fn pieces<'a>(body: &'a [u8], boundary: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
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

/// Returns where the boundary of the next delimiter begins, behind its two dashes.
fn delimiter(body: &[u8], boundary: &[u8], at_start: bool) -> Option<usize> {
    let is_boundary = |at: usize| {
        let behind = body[at..].strip_prefix(boundary);
        behind.is_some_and(|rest| matches!(rest.first(), None | Some(b'-' | b'\r' | b'\n' | b' ' | b'\t')))
    };
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
    fn the_boundary_is_taken_out_where_it_delimits() {
        let body = |b: &str| format!("--{b}\r\nname=a\r\n\r\n7 b1 --b1\r\n--{b}--\r\n");
        let (one, two) = (body("b1"), body("b22"));
        assert_eq!(of(&one, "b1"), of(&two, "b22"));
        assert_eq!(of(&one, "b1").len(), 3);
        assert_ne!(of(&one, "b1"), of(&one, "b22"));
        assert_eq!(of("", "b"), [""]);
    }
}
