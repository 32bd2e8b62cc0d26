//! A warning if the last handle of a store is dropped while operations run: their records are lost.

use super::sharding::Memory;

/// Emits an event if the store is dropped while operations run, once for each store.
impl Drop for Memory {
    fn drop(&mut self) {
        let running = self.running();
        if running > 0 {
            warn_of(running);
        }
    }
}

#[cfg(feature = "tracing")]
fn warn_of(running: usize) {
    tracing::warn!(
        running,
        "a memory store was dropped while operations ran, so that a repeated request runs once more; keep the store until \
         the service has stopped and `BackgroundTasks` has waited for the work of clients that left, or use a store that outlives \
         the process"
    );
}

#[cfg(not(feature = "tracing"))]
fn warn_of(_: usize) {}
