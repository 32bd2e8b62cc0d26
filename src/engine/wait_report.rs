//! The wait of a duplicate, as it is reported: its begin, and its end however that comes.

use tokio::time::Instant;

use super::{Engine, waiting::Waiter};
use crate::value::{Event, RecordKey, WaitEnd};

/// A duplicate that waits, and the report of it.
pub(super) struct Waiting<'a> {
    pub(super) waiter: Waiter<'a>,
    pub(super) report: WaitReport<'a>,
}

/// Reports the end of a wait when it is dropped.
pub(super) struct WaitReport<'a> {
    engine: &'a Engine,
    key: &'a RecordKey,
    since: Instant,
    /// How the wait ended; that it was cancelled, as long as nothing else is known.
    pub(super) end: WaitEnd,
}

impl Engine {
    /// Begins to wait for another run of the key, with room for the body. `None`: there is no room.
    pub(super) fn begin_wait<'a>(&'a self, key: &'a RecordKey, body: usize) -> Option<Waiting<'a>> {
        let waiter = self.waiters.join(key, self.waiting.hold(body)?);
        self.report(&Event::Waiting { key });
        let report = WaitReport { engine: self, key, since: Instant::now(), end: WaitEnd::Cancelled };
        Some(Waiting { waiter, report })
    }
}

/// Ends a wait, if there is one.
pub(super) fn end_wait(waiting: &mut Option<Box<Waiting<'_>>>, end: WaitEnd) {
    if let Some(mut waiting) = waiting.take() {
        waiting.report.end = end;
    }
}

impl Drop for WaitReport<'_> {
    fn drop(&mut self) {
        let waited = self.since.elapsed();
        self.engine.report(&Event::Waited { key: self.key, waited, end: self.end });
    }
}
