use std::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::value::{hex, random_bytes};

/// The most bytes of a route and of a method that are kept: what a column of each database holds.
const MOST_OF_ROUTE: usize = 255;
const MOST_OF_METHOD: usize = 32;
/// The most bytes of a path, and of all headers together, so that the whole row is bounded whatever the server accepts.
const MOST_OF_PATH: usize = 8 * 1024;
const MOST_OF_HEADERS: usize = 64 * 1024;

/// A message that came in, as it is written to a [`MessageLog`](super::MessageLog).
///
/// [`MessageLogLayer`](crate::MessageLogLayer) makes one of each request. For messages that come in by another way:
///
/// ```
/// use tower_idempotency::sql::message_log::IncomingMessage;
///
/// let message = IncomingMessage::new("payouts", r#"{"order":7}"#).key("order-7").header("content-type", "application/json");
/// assert_eq!(message.id.len(), 32);
/// assert!(message.key_digest.is_some());
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncomingMessage {
    /// 32 random hexadecimal digits. A log takes an id once: writing it again changes nothing.
    pub id: String,
    /// The name of the route, or of the queue. The first 255 bytes are kept.
    pub route: String,
    /// The SHA-256 of the idempotency key, if the message has one.
    pub key_digest: Option<[u8; 32]>,
    /// The method; empty if it is not a request. The first 32 bytes are kept.
    pub method: String,
    /// The path and the query; empty if it is not a request. The first 8 KiB are kept.
    pub path: String,
    /// The names and values of the headers that are kept, in their order, up to 64 KiB. A name has no colon in it and no
    /// line break, and a value has no line break.
    pub headers: Vec<(String, Bytes)>,
    /// The body, or its beginning.
    pub body: Bytes,
    /// Whether the body, the path or the headers were longer than what is kept of them, or the body did not arrive
    /// whole.
    pub is_cut: bool,
}

impl IncomingMessage {
    /// Creates a message with a new id, and neither key nor head.
    pub fn new(route: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            id: hex(&random_bytes::<16>()),
            route: route.into(),
            key_digest: None,
            method: String::new(),
            path: String::new(),
            headers: Vec::new(),
            body: body.into(),
            is_cut: false,
        }
    }

    /// Sets the idempotency key, of which the log keeps the SHA-256.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.key_digest = Some(digest_of(key));
        self
    }

    /// Sets the method and the path of a request.
    #[must_use]
    pub fn request(mut self, method: impl Into<String>, path: impl Into<String>) -> Self {
        (self.method, self.path) = (method.into(), path.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns what is kept of the body.
    pub(super) fn body_column(&self, limit: usize) -> &[u8] {
        &self.body[..limit.min(self.body.len())]
    }

    pub(super) fn method_column(&self) -> &str {
        beginning(&self.method, MOST_OF_METHOD)
    }

    pub(super) fn path_column(&self) -> &str {
        beginning(&self.path, MOST_OF_PATH)
    }

    /// Returns the headers as text, one a line, as far as they are kept. Each byte of a value is one character, so that
    /// any value is text.
    pub(super) fn header_lines(&self) -> String {
        let mut lines = String::new();
        for (name, value) in &self.headers[..self.kept_headers()] {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(name);
            lines.push_str(": ");
            lines.extend(value.iter().copied().map(char::from));
        }
        lines
    }

    /// Returns how many of the headers are kept.
    fn kept_headers(&self) -> usize {
        let mut left = MOST_OF_HEADERS;
        let is_over = |(name, value): &(String, Bytes)| match left.checked_sub(name.len() + value.len()) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        };
        self.headers.iter().position(is_over).unwrap_or(self.headers.len())
    }

    /// Returns whether something is left out of the message.
    pub(super) fn is_cut_at(&self, body_limit: usize) -> bool {
        self.is_cut
            || self.body.len() > body_limit
            || self.path.len() > MOST_OF_PATH
            || self.kept_headers() < self.headers.len()
    }
}

/// Returns the headers of a text.
pub(super) fn headers_of(lines: &str) -> Vec<(String, Bytes)> {
    let value = |text: &str| text.chars().map(|byte| u8::try_from(byte).unwrap_or(b'?')).collect::<Bytes>();
    let header = |line: &str| line.split_once(": ").map(|(name, text)| (name.to_owned(), value(text)));
    lines.split('\n').filter_map(header).collect()
}

/// Returns what the column of a route holds.
pub(super) fn route_column(route: &str) -> &str {
    beginning(route, MOST_OF_ROUTE)
}

pub(super) fn digest_of(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Omits the body, the path and the values of the headers.
impl fmt::Debug for IncomingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingMessage")
            .field("id", &self.id)
            .field("route", &self.route)
            .field("method", &self.method)
            .field("body", &format_args!("<{} bytes>", self.body.len()))
            .field("is_cut", &self.is_cut)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() {
        let every_byte: Bytes = (0..=u8::MAX).filter(|byte| *byte != b'\n').collect();
        let message = IncomingMessage::new("r", "").header("x-a", "1").header("x-b", every_byte).header("x-c", "");
        assert_eq!(headers_of(&message.header_lines()), message.headers);
        assert_eq!(headers_of(""), []);
    }

    #[test]
    fn a_body_is_cut_at_the_limit() {
        let message = IncomingMessage::new("r", "abc");
        assert_eq!((message.body_column(3), message.is_cut_at(3)), (&b"abc"[..], false));
        assert_eq!((message.body_column(2), message.is_cut_at(2)), (&b"ab"[..], true));
        assert!(IncomingMessage { is_cut: true, ..message }.is_cut_at(9));
    }

    #[test]
    fn a_head_is_bounded_whatever_a_server_accepts() {
        let long = "x".repeat(40_000);
        let message = IncomingMessage::new("r", "").header("a", "1").header("b", long.clone());
        assert!(!message.is_cut_at(9));
        let message = message.header("c", long.clone()).header("d", "1");
        assert!(message.is_cut_at(9));
        assert_eq!(headers_of(&message.header_lines()), message.headers[..2]);
        let message = IncomingMessage::new("r", "").request("GET", long);
        assert_eq!((message.path_column().len(), message.is_cut_at(9)), (8 * 1024, true));
    }

    #[test]
    fn what_a_column_cannot_hold_is_cut_between_two_characters() {
        let long = "ä".repeat(200);
        assert_eq!(route_column(&long).len(), 254);
        assert_eq!(IncomingMessage::new("r", "").request("x".repeat(40), "/").method_column().len(), 32);
    }

    #[test]
    fn debug_shows_no_content() {
        let message = IncomingMessage::new("r", "hidden").request("GET", "/hidden").header("x", "hidden").key("hidden");
        assert!(!format!("{message:?}").contains("hidden"));
    }
}
