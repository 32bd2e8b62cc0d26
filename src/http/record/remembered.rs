//! The headers of the answers that were replayed last, by their packed bytes.
//!
//! Most answers of a route have the same headers, and to read them means to look up each name and to check each value.
//! Each thread remembers the fields of a few. Headers that differ from answer to answer,
//! such as a `Location`, are not worth it: what is remembered was missed twice in a row. Equal bytes are equal headers,
//! so it makes no difference whose answer they came from.

use std::cell::RefCell;

use http::{HeaderMap, HeaderName, HeaderValue};

/// How many heads a thread remembers.
const HEADS: usize = 4;

/// The longest packed headers that are remembered, in bytes.
const LONGEST: usize = 512;

/// Values that are the same in most services: a static value is cloned without a count.
static USUAL_VALUES: [&str; 6] = [
    "application/json",
    "application/octet-stream",
    "text/html; charset=utf-8",
    "text/plain; charset=utf-8",
    "no-store",
    "no-cache",
];

/// The headers of an answer, packed and unpacked.
struct PackedHead {
    packed: Box<[u8]>,
    fields: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Default)]
struct Remembered {
    heads: [Option<PackedHead>; HEADS],
    /// The place that is replaced next.
    next: usize,
    /// The packed headers that were missed last.
    missed: Vec<u8>,
}

thread_local! {
    static REMEMBERED: RefCell<Remembered> = RefCell::default();
}

/// Returns the headers with which `packed` begins, with room for `more` of them, and how many bytes they take, if they
/// are remembered.
pub(super) fn headers(packed: &[u8], more: usize) -> Option<(HeaderMap, usize)> {
    REMEMBERED.with_borrow(|remembered| {
        let head = remembered.heads.iter().flatten().find(|head| packed.starts_with(&head.packed))?;
        let mut headers = HeaderMap::with_capacity(head.fields.len() + more);
        for (name, value) in &head.fields {
            headers.append(name.clone(), value.clone());
        }
        Some((headers, head.packed.len()))
    })
}

/// Notes headers that were not remembered. The second time in a row, they are.
pub(super) fn missed(packed: &[u8], headers: &HeaderMap) {
    if packed.len() > LONGEST {
        return;
    }
    REMEMBERED.with_borrow_mut(|remembered| {
        if remembered.missed != packed {
            remembered.missed.clear();
            remembered.missed.extend_from_slice(packed);
            return;
        }
        let place = remembered.next % HEADS;
        remembered.next = place + 1;
        let fields = headers.iter().map(|(name, value)| (name.clone(), owned(value))).collect();
        remembered.heads[place] = Some(PackedHead { packed: packed.into(), fields });
    });
}

/// Returns a copy that shares no bytes with the answer that the value came from.
fn owned(value: &HeaderValue) -> HeaderValue {
    let usual = USUAL_VALUES.iter().find(|usual| value == **usual);
    let usual = usual.map(|usual| HeaderValue::from_static(usual));
    usual.or_else(|| HeaderValue::from_bytes(value.as_bytes()).ok()).unwrap_or_else(|| value.clone())
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_TYPE, LOCATION};

    use super::*;

    fn map(location: &'static str) -> HeaderMap {
        HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (LOCATION, HeaderValue::from_static(location)),
        ])
    }

    #[test]
    fn headers_that_come_twice_in_a_row_are_remembered() {
        let (packed, other) = (b"\x02packed".as_slice(), b"\x02others".as_slice());
        missed(packed, &map("/1"));
        missed(other, &map("/2"));
        missed(packed, &map("/1"));
        assert_eq!(headers(packed, 1), None);
        missed(packed, &map("/1"));
        let behind = [packed, b"\0body"].concat();
        assert_eq!(headers(&behind, 1), Some((map("/1"), packed.len())));
        assert_eq!(headers(&packed[..6], 1), None);
        assert_eq!(headers(other, 1), None);
    }

    #[test]
    fn a_few_are_remembered_and_long_ones_are_not() {
        for number in 0..=u8::try_from(HEADS).unwrap() {
            missed(&[number, 1], &map("/1"));
            missed(&[number, 1], &map("/1"));
        }
        assert_eq!(headers(&[0, 1], 1), None);
        assert_eq!(headers(&[4, 1], 1), Some((map("/1"), 2)));
        let long = [7; LONGEST + 1];
        missed(&long, &map("/1"));
        missed(&long, &map("/1"));
        assert_eq!(headers(&long, 1), None);
    }
}
