//! A kept answer as bytes. Lengths stand in front; the body is what is left, so that a replay slices it.
//!
//! | part | bytes |
//! | --- | --- |
//! | version | 1: 2, or 3 with a trace |
//! | status | 2 |
//! | times | 16: when it was kept, and for how long, in milliseconds; not in version 1 |
//! | trace | 25: the trace context of the run; only in version 3 |
//! | headers | the count, then for each field: length, name, length, value |
//! | trailers | the same |
//! | body | the rest |
//!
//! Counts and lengths are numbers of seven bits a byte. A reader accepts any bytes: what does not fit is `None`, never
//! a panic and never an allocation that the bytes do not justify, since the store may hand back anything.
//!
//! A new version has to be readable by the processes that will read it: during a deploy old and new processes share the
//! store. So first a release that reads the new version, then one that writes it; until then an old process answers a
//! new payload with `response-not-retained`.

use std::{mem, ops::Range};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{
    headers::{HeaderPolicy, is_hop_by_hop},
    remembered,
};
use crate::{
    body::Collected,
    http::respond::Times,
    value::{KeptAnswer, TraceContext},
};

/// The version that had no times. It is still read.
const WITHOUT_TIMES: u8 = 1;
const VERSION: u8 = 2;
const WITH_TRACE: u8 = 3;

/// The version and the status.
const HEAD: usize = 3;

/// What an answer gets on its way out: the mark of a replay, the length, the date. A map that has to grow is built
/// anew.
const ADDED: usize = 3;

/// A header and its value.
type HeaderField<'a> = (&'a HeaderName, &'a HeaderValue);

/// Packs an answer, without the headers and trailers that are not kept.
pub(crate) fn encode(
    status: StatusCode,
    headers: &HeaderMap,
    body: &Collected,
    kept: &HeaderPolicy,
    times: Times,
    trace: Option<TraceContext>,
) -> Bytes {
    let trailers = body.trailers.iter().flat_map(|trailers| trailers.iter());
    // Enough if everything is kept, as it usually is: then the bytes need no owner beside themselves.
    let head = HEAD + Times::BYTES + trace.map_or(0, |_| TraceContext::LENGTH);
    let length = head + fields_length(headers.iter()) + fields_length(trailers) + body.data.len();
    let mut out = Vec::with_capacity(length);
    out.push(if trace.is_some() { WITH_TRACE } else { VERSION });
    out.extend_from_slice(&status.as_u16().to_be_bytes());
    out.extend_from_slice(&times.to_bytes());
    if let Some(trace) = trace {
        out.extend_from_slice(&trace.to_bytes());
    }
    put_fields(&mut out, kept.of(status, headers));
    let trailers = body.trailers.iter().flat_map(|trailers| kept.of(status, trailers));
    put_fields(&mut out, trailers);
    out.extend_from_slice(&body.data);
    debug_assert!(out.len() <= length);
    Bytes::from(out)
}

/// The times of an answer that was packed just now.
pub(crate) fn times(payload: &Bytes) -> Option<Times> {
    Some(Times::from_bytes(payload.get(HEAD..HEAD + Times::BYTES)?.try_into().ok()?))
}

/// Unpacks an answer; returns `None` if the bytes are of an unknown version or malformed.
pub(crate) fn decode(mut payload: Bytes) -> Option<KeptAnswer> {
    let [version @ (WITHOUT_TIMES | VERSION | WITH_TRACE), high, low, ..] = payload[..] else { return None };
    let status = StatusCode::from_u16(u16::from_be_bytes([high, low])).ok()?;
    let mut rest = PayloadReader { payload: &payload, from: HEAD };
    let times = if version == WITHOUT_TIMES { None } else { Some(rest.take_times()?) };
    let trace = if version == WITH_TRACE { Some(rest.take_trace()?) } else { None };
    let headers = if let Some((headers, length)) = remembered::headers(&payload[rest.from..], ADDED) {
        rest.from += length;
        headers
    } else {
        let from = rest.from;
        let headers = rest.take_fields(ADDED)?;
        if status.is_informational() || headers.keys().any(is_hop_by_hop) {
            // A server would not know how to send it.
            return None;
        }
        remembered::missed(&payload[from..rest.from], &headers);
        headers
    };
    let trailers = Some(rest.take_fields(0)?).filter(|trailers| !trailers.is_empty()).map(Box::new);
    let body = rest.from;
    payload.advance(body);
    Some(KeptAnswer {
        status,
        headers,
        body: payload,
        trailers,
        completed: times.and_then(Times::completed),
        expires: times.and_then(Times::expires),
        trace,
    })
}

/// What is still to be read. It counts where it is, since each slice of a payload costs two counts of its owners.
struct PayloadReader<'a> {
    payload: &'a Bytes,
    /// The first byte that was not read.
    from: usize,
}

impl PayloadReader<'_> {
    /// Takes fields, with room for `more` of them.
    fn take_fields(&mut self, more: usize) -> Option<HeaderMap> {
        let count = self.take_varint()?;
        // Each field takes two bytes at least, and a map has its own bound.
        let left = self.payload.len() - self.from;
        let mut fields = HeaderMap::try_with_capacity(count.min(left / 2) + more).ok()?;
        for _ in 0..count {
            let (name, value) = (self.take_part()?, self.take_part()?);
            let name = HeaderName::from_bytes(&self.payload[name]).ok()?;
            let value = HeaderValue::from_maybe_shared(self.payload.slice(value)).ok()?;
            fields.try_append(name, value).ok()?;
        }
        Some(fields)
    }

    /// Takes the times of the second version.
    fn take_times(&mut self) -> Option<Times> {
        let bytes = self.payload.get(self.from..self.from + Times::BYTES)?.try_into().ok()?;
        self.from += Times::BYTES;
        Some(Times::from_bytes(bytes))
    }

    /// Takes the trace context of the third version.
    fn take_trace(&mut self) -> Option<TraceContext> {
        let bytes = self.payload.get(self.from..self.from + TraceContext::LENGTH)?.try_into().ok()?;
        self.from += TraceContext::LENGTH;
        Some(TraceContext::from_bytes(bytes))
    }

    /// Takes the range of a part that is preceded by its length.
    fn take_part(&mut self) -> Option<Range<usize>> {
        let length = self.take_varint()?;
        let end = self.from.checked_add(length).filter(|&end| end <= self.payload.len())?;
        Some(mem::replace(&mut self.from, end)..end)
    }

    /// Takes a number of at most four bytes with seven bits each, the lowest first.
    fn take_varint(&mut self) -> Option<usize> {
        let mut number = 0;
        for (at, &byte) in self.payload[self.from..].iter().enumerate().take(4) {
            number |= usize::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.from += at + 1;
                return Some(number);
            }
        }
        None
    }
}

/// Returns the length of fields as they are packed.
fn fields_length<'a>(fields: impl Iterator<Item = HeaderField<'a>>) -> usize {
    let part = |length| varint_length(length) + length;
    let (count, parts) = fields.fold((0, 0), |(count, parts), (name, value)| {
        (count + 1, parts + part(name.as_str().len()) + part(value.len()))
    });
    varint_length(count) + parts
}

/// Writes the count of the fields, then name and value of each.
fn put_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = HeaderField<'a>>) {
    let (from, mut count) = (out.len(), 0);
    put_varint(out, 0);
    for (name, value) in fields {
        count += 1;
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            put_varint(out, part.len());
            out.extend_from_slice(part);
        }
    }
    // The count is known only now. It has one byte, unless there are more than 127 fields.
    if let Ok(count @ ..0x80) = u8::try_from(count) {
        out[from] = count;
    } else {
        let mut number = Vec::new();
        put_varint(&mut number, count);
        drop(out.splice(from..=from, number));
    }
}

/// Returns how many bytes a number takes.
fn varint_length(mut number: usize) -> usize {
    let mut length = 1;
    while number >= 0x80 {
        number >>= 7;
        length += 1;
    }
    length
}

/// Writes a number with seven bits a byte, the lowest first; the highest bit says that more follow.
#[allow(clippy::cast_possible_truncation)] // seven bits at a time
fn put_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> (HeaderMap, Collected) {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("location", "/orders/7"), ("x-a", "one"), ("x-a", "two"), ("set-cookie", "s=1"), ("x-e", "")]
        {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert("x-long", HeaderValue::from_str(&"v".repeat(300)).unwrap());
        headers.insert("x-bytes", HeaderValue::from_bytes(b"\xff\xfe").unwrap());
        let trailers = HeaderMap::from_iter([("x-checksum".parse().unwrap(), "abc".parse().unwrap())]);
        (headers, Collected { data: Bytes::from_static(b"\0body"), trailers: Some(Box::new(trailers)) })
    }

    #[test]
    fn an_answer_comes_back_whole() {
        let (headers, body) = answer();
        let payload = encode(StatusCode::CREATED, &headers, &body, &HeaderPolicy::default(), Times::now(None), None);
        let kept = decode(payload.clone()).unwrap();
        assert_eq!(kept.status, StatusCode::CREATED);
        assert_eq!(kept.body, body.data);
        assert_eq!(kept.trailers, body.trailers);
        let mut expected = headers.clone();
        expected.remove("set-cookie");
        assert_eq!(kept.headers, expected);
        assert_eq!(kept.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn more_fields_than_one_byte_can_count_come_back_too() {
        let (_, body) = answer();
        let named = |number: usize| (HeaderName::try_from(format!("x-{number}")).unwrap(), HeaderValue::from(number));
        for count in [0, 1, 127, 128, 300] {
            let headers = (0..count).map(named).collect::<HeaderMap>();
            let payload = encode(StatusCode::OK, &headers, &body, &HeaderPolicy::default(), Times::now(None), None);
            let kept = decode(payload).unwrap();
            assert_eq!((kept.headers, kept.body), (headers, body.data.clone()));
        }
    }

    #[test]
    fn a_replay_slices_the_payload() {
        let (headers, body) = answer();
        let payload = encode(StatusCode::OK, &headers, &body, &HeaderPolicy::default(), Times::now(None), None);
        let kept = decode(payload.clone()).unwrap();
        assert_eq!(kept.body.as_ptr_range().end, payload.as_ptr_range().end);
    }

    #[test]
    fn torn_payloads_are_none() {
        let (headers, body) = answer();
        let payload = encode(StatusCode::OK, &headers, &body, &HeaderPolicy::default(), Times::now(None), None);
        for end in 0..payload.len() - body.data.len() {
            assert!(decode(payload.slice(..end)).is_none(), "{end}");
        }
        for version in [0, 4, 255] {
            let mut other = payload.to_vec();
            other[0] = version;
            assert!(decode(Bytes::from(other)).is_none());
        }
        assert!(decode(Bytes::from_static(&[1, 0, 200, 0xff, 0xff, 0xff, 0x7f])).is_none());
    }

    #[test]
    fn the_trace_of_the_run_comes_back() {
        let (headers, body) = answer();
        let trace = TraceContext::new([7; 16], [9; 8], 1);
        let encoded =
            |trace| encode(StatusCode::OK, &headers, &body, &HeaderPolicy::default(), Times::now(None), trace);
        let payload = encoded(Some(trace));
        assert_eq!(payload.len(), encoded(None).len() + TraceContext::LENGTH);
        let kept = decode(payload.clone()).unwrap();
        assert_eq!((kept.trace, &kept.body), (Some(trace), &body.data));
        assert!(kept.completed.is_some());
        for end in 0..HEAD + Times::BYTES + TraceContext::LENGTH {
            assert!(decode(payload.slice(..end)).is_none(), "{end}");
        }
    }

    #[test]
    fn an_answer_of_the_first_version_is_read() {
        let payload = [&[WITHOUT_TIMES, 0, 201, 1, 3][..], b"x-a", &[1], b"7", &[0], b"body"].concat();
        let kept = decode(Bytes::from(payload)).unwrap();
        assert_eq!((kept.status, &kept.body[..]), (StatusCode::CREATED, &b"body"[..]));
        assert_eq!((kept.completed, kept.expires), (None, None));
        assert_eq!(kept.headers["x-a"], "7");
    }

    #[test]
    fn varints() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 1 << 20] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!(out.len(), varint_length(number));
            let bytes = Bytes::from(out);
            let mut rest = PayloadReader { payload: &bytes, from: 0 };
            assert_eq!(rest.take_varint(), Some(number));
            assert_eq!(rest.from, bytes.len());
        }
    }
}
