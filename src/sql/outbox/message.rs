use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::{
    sql::driver::SqlDatabase,
    value::{StoreError, StoreErrorKind, check_key, hex, random_bytes},
};

/// The characters that would end a header or its name.
const IN_A_HEADER: &AsciiSet = &CONTROLS.add(b'%').add(b':');

/// A message to be staged, which is sent once the transaction is committed.
///
/// ```
/// use tower_idempotency::sql::outbox::Message;
///
/// let paid = Message::new("order.paid", r#"{"order":7}"#).key("order-7").header("content-type", "application/json");
/// assert_eq!(paid.key.as_deref(), Some("order-7"));
/// assert_eq!(paid.id.len(), 36);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// A random UUID (RFC 9562, version 4), the same however often the message is sent. A consumer recognises a
    /// duplicate by it.
    ///
    /// A table accepts an id once. An id that is set by hand, such as a business number, is up to 36 characters of
    /// ASCII.
    pub id: String,
    /// The destination: a subject, a topic, a routing key. 1 to 255 bytes, without control characters, not blank.
    pub topic: String,
    /// The ordering key. Messages of one key are sent in their order, whatever their topics. Messages without a key
    /// have no order.
    ///
    /// 1 to 255 bytes, without control characters.
    pub key: Option<String>,
    /// Names and values, such as a content type or a trace.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub payload: Bytes,
}

impl Message {
    /// Creates a message with a new id, without a key and without headers.
    pub fn new(topic: impl Into<String>, payload: impl Into<Bytes>) -> Self {
        Self { id: random_id(), topic: topic.into(), key: None, headers: Vec::new(), payload: payload.into() }
    }

    /// Sets the key by which the order of messages is kept, such as an order number or an account.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Checks that the columns of every database can hold the message: a database that is not strict would truncate it.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let refused = |message| StoreError::new(StoreErrorKind::Invalid, message).without_effect();
        let of = |what: &'static str| move |error| refused(format!("a message's {what}: {error}"));
        check_key(&self.topic).map_err(of("topic"))?;
        check_key(self.key.as_deref().unwrap_or("-")).map_err(of("key"))?;
        let (text, length) = (self.id.bytes().all(|byte| byte.is_ascii_graphic()), self.id.len());
        if text && (1..=36).contains(&length) {
            return Ok(());
        }
        Err(refused("a message's id is 1 to 36 characters of ASCII".to_owned()))
    }

    /// Returns the headers as text, one a line.
    pub(crate) fn header_lines(&self) -> Option<String> {
        let encoded = |text: &str| utf8_percent_encode(text, IN_A_HEADER).to_string();
        let line = |(name, value): &(String, String)| format!("{}: {}", encoded(name), encoded(value));
        (!self.headers.is_empty()).then(|| self.headers.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// Omits the payload and the values of the headers.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("id", &self.id).field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// A message that was staged, as a relay sends it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StagedMessage {
    /// The message.
    pub message: Message,
    /// The number of this try, from 1 on; in a list, how many there were. A try that a crash has interrupted counts.
    pub attempt: u32,
    /// When it was staged, by the database's clock.
    pub staged: SystemTime,
    pub(crate) seq: i64,
    pub(crate) relay: [u8; 16],
}

impl StagedMessage {
    /// Returns the position of the message in the order of staging, for [`unsent_after`](super::Outbox::unsent_after).
    #[must_use]
    pub fn position(&self) -> i64 {
        self.seq
    }

    /// Reads the columns of [`MESSAGE`](super::statements).
    pub(crate) fn read<D: SqlDatabase>(row: &D::Row) -> sqlx::Result<Self> {
        let text = |at| Ok::<_, sqlx::Error>(D::text(row, at)?.unwrap_or_default());
        let int = |at| Ok::<_, sqlx::Error>(D::int(row, at)?.unwrap_or_default());
        let message = Message {
            id: text(1)?,
            topic: text(2)?,
            key: D::text(row, 3)?,
            headers: D::text(row, 4)?.map(|lines| headers(&lines)).unwrap_or_default(),
            payload: D::bytes(row, 5)?.unwrap_or_default().into(),
        };
        let staged = SystemTime::UNIX_EPOCH + Duration::from_millis(int(6)?.unsigned_abs());
        let attempt = u32::try_from(int(7)?).unwrap_or(u32::MAX);
        Ok(Self { message, attempt, staged, seq: int(0)?, relay: [0; 16] })
    }
}

fn headers(lines: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (decoded(name), decoded(value)));
    lines.split('\n').filter_map(header).collect()
}

fn random_id() -> String {
    let mut bytes: [u8; 16] = random_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids() {
        let id = random_id();
        let dashes: Vec<_> = id.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((id.len(), dashes, &id[14..15]), (36, vec![8, 13, 18, 23], "4"));
        assert!("89ab".contains(&id[19..20]), "{id}");
        assert_ne!(id, random_id());
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        let message =
            Message::new("t", "").header("content-type", "text/plain; charset=utf-8").header("a: b\n", ": 5%\r\n");
        assert_eq!(headers(&message.header_lines().unwrap()), message.headers);
        let message = Message::new("t", "").header("", "").header("ä", "日本");
        assert_eq!(headers(&message.header_lines().unwrap()), message.headers);
        assert_eq!(Message::new("t", "").header_lines(), None);
    }

    #[test]
    fn what_no_column_holds_is_refused() {
        let long = "x".repeat(256);
        assert!(Message::new("t", "").key("k").check().is_ok());
        for message in [Message::new("", ""), Message::new(&*long, ""), Message::new("t", "").key(&*long)] {
            assert!(message.check().unwrap_err().is_without_effect());
        }
        assert!(Message { id: "7 ".into(), ..Message::new("t", "") }.check().is_err());
        assert!(Message::new("t", "").key("a\0").check().is_err());
    }
}
