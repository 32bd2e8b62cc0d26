use std::time::{Duration, SystemTime};

use crate::{sql::driver::SqlDatabase, value::millis};

use super::message::{IncomingMessage, digest_of, headers_of};

/// A message of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoggedMessage {
    /// The message.
    pub message: IncomingMessage,
    /// The time of its arrival, by the database's clock.
    pub arrived: SystemTime,
    /// The status of its answer. `None` if there was none: the client or the process was gone before, or the answer was
    /// not noted.
    pub status: Option<u16>,
    /// The time at which the answer was noted.
    pub answered: Option<SystemTime>,
    position: (i64, i64),
}

impl LoggedMessage {
    /// Reads the columns of `LOGGED` in `statements.rs`.
    pub(super) fn read<D: SqlDatabase>(row: &D::Row) -> sqlx::Result<Self> {
        let text = |at| Ok::<_, sqlx::Error>(D::text(row, at)?.unwrap_or_default());
        let int = |at| Ok::<_, sqlx::Error>(D::int(row, at)?.unwrap_or_default());
        let time = |millis: i64| SystemTime::UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs());
        let message = IncomingMessage {
            id: text(1)?,
            route: text(2)?,
            key_digest: D::bytes(row, 3)?.and_then(|digest| digest.try_into().ok()),
            method: text(4)?,
            path: text(5)?,
            headers: headers_of(&text(6)?),
            body: D::bytes(row, 7)?.unwrap_or_default().into(),
            is_cut: D::flag(row, 8)?.unwrap_or_default(),
        };
        Ok(Self {
            message,
            arrived: time(int(9)?),
            status: D::int(row, 10)?.and_then(|status| status.try_into().ok()),
            answered: D::int(row, 11)?.map(time),
            position: (int(9)?, int(0)?),
        })
    }
}

/// The messages that [`MessageLog::list`](super::MessageLog::list) returns. Default: all of them, from the first on.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tower_idempotency::sql::message_log::MessageFilter;
///
/// let in_2026 = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
/// let filter = MessageFilter::new().route("payments").key("order-7").from(in_2026);
/// # drop(filter);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a filter does nothing until a log is read with it"]
pub struct MessageFilter {
    pub(super) key: Option<[u8; 32]>,
    pub(super) route: Option<String>,
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) after: (i64, i64),
}

impl MessageFilter {
    /// Creates a filter that includes all messages.
    pub fn new() -> Self {
        Self { key: None, route: None, from: 0, until: i64::MAX, after: (-1, 0) }
    }

    /// Includes messages with this idempotency key only.
    pub fn key(self, key: &str) -> Self {
        Self { key: Some(digest_of(key)), ..self }
    }

    /// Includes messages of this route only.
    pub fn route(self, route: impl Into<String>) -> Self {
        Self { route: Some(route.into()), ..self }
    }

    /// Includes messages only if they arrived at this time or later.
    pub fn from(self, time: SystemTime) -> Self {
        Self { from: since_1970(time), ..self }
    }

    /// Includes messages only if they arrived before this time.
    pub fn until(self, time: SystemTime) -> Self {
        Self { until: since_1970(time), ..self }
    }

    /// Includes only what follows `last`: the next page begins after the last message of the page before.
    pub fn after(self, last: &LoggedMessage) -> Self {
        Self { after: last.position, ..self }
    }
}

impl Default for MessageFilter {
    fn default() -> Self {
        Self::new()
    }
}

fn since_1970(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(millis(since)).unwrap_or(i64::MAX)
}
