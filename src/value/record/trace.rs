use std::fmt;

use http::HeaderMap;

/// The position of a run in a distributed trace: the identifiers and flags of a `traceparent` (W3C Trace Context,
/// section 3.2).
///
/// It is kept with the answer, so that a replay can link to the run whose answer it repeats; see
/// [`trace_context`](crate::IdempotencyLayer::trace_context).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext([u8; Self::LENGTH]);

impl TraceContext {
    /// The length of a context, in bytes: trace id (16), span id (8), flags (1).
    pub const LENGTH: usize = 25;

    /// Creates the context of a trace id, a span id and the flags.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Self {
        let mut bytes = [flags; Self::LENGTH];
        bytes[..16].copy_from_slice(&trace_id);
        bytes[16..24].copy_from_slice(&span_id);
        Self(bytes)
    }

    /// Returns the context that the header `traceparent` of a request has, in version 00 or a later one that begins like
    /// it; `None` if there is no such header, or if it is not valid.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get("traceparent")?.as_bytes();
        let (version, rest) = text.split_first_chunk::<3>()?;
        let is_version =
            version[2] == b'-' && version[..2] != *b"ff" && version[..2].iter().all(|&digit| is_hex(digit));
        let (known, more) = rest.split_first_chunk::<52>()?;
        let is_longer = more.first() == Some(&b'-') && version[..2] != *b"00";
        if !is_version || !(more.is_empty() || is_longer) || known[32] != b'-' || known[49] != b'-' {
            return None;
        }
        let mut bytes = [0; Self::LENGTH];
        let digits = known[..32].chunks(2).chain(known[33..49].chunks(2)).chain(known[50..].chunks(2));
        for (byte, digits) in bytes.iter_mut().zip(digits) {
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        let is_valid = bytes[..16].iter().any(|&byte| byte != 0) && bytes[16..24].iter().any(|&byte| byte != 0);
        is_valid.then_some(Self(bytes))
    }

    /// Returns the trace id.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        std::array::from_fn(|at| self.0[at])
    }

    /// Returns the span id.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        std::array::from_fn(|at| self.0[16 + at])
    }

    /// Returns the flags, of which the lowest bit is *sampled*.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.0[24]
    }

    /// Creates the context that a store has kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns the context as bytes, for a store to keep.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::LENGTH] {
        self.0
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceContext({})", crate::value::key::hex(&self.0))
    }
}

/// Returns the value of a digit in base 16. Capital letters are not valid in a `traceparent`.
const fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

const fn is_hex(byte: u8) -> bool {
    digit(byte).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_the_specification_says() {
        let read = |text: &str| {
            TraceContext::from_headers(&HeaderMap::from_iter([("traceparent".parse().ok()?, text.parse().ok()?)]))
        };
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let found = read(valid).unwrap();
        assert_eq!(format!("{found:?}"), "TraceContext(4bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701)");
        assert_eq!(found, TraceContext::new(found.trace_id(), found.span_id(), found.flags()));
        assert_eq!((found.trace_id()[0], found.span_id()[7], found.flags()), (0x4b, 0xb7, 1));
        assert_eq!(read(&valid.replacen("00", "01", 1)), Some(found));
        assert_eq!(read(&format!("01{}-more", &valid[2..])), Some(found));
        for invalid in [
            "",
            "00",
            &valid[..54],
            &format!("{valid}-more"),
            &format!("{valid}0"),
            &valid.replacen("00", "ff", 1),
            &valid.replacen("00", "0G", 1),
            &valid.replace('b', "B"),
            &valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &valid.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &valid.replace('-', "_"),
        ] {
            assert_eq!(read(invalid), None, "{invalid}");
        }
        assert_eq!(TraceContext::from_headers(&HeaderMap::new()), None);
    }
}
