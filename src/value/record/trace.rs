use std::fmt;

/// The position of a run in a distributed trace: the identifiers and flags of a `traceparent` (W3C Trace Context,
/// section 3.2).
///
/// A store keeps it with the record, so that a replay can link to the run whose answer it repeats.
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
