//! Time: what a thread has spent on a processor, and a clock for stores that is set by hand.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use tower_idempotency::store::Clock;

/// The processor time of this thread, in nanoseconds. Other programs that run meanwhile do not count.
pub fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// A clock that only [`tick`](Self::tick) moves. Reading it takes as long as reading the system's, which it does too.
#[derive(Clone, Debug)]
pub struct Paced {
    millis: Arc<AtomicU64>,
}

impl Paced {
    /// Short beside a lease, so that a record of some ticks is kept for longer than its lease.
    pub const TICK: Duration = Duration::from_secs(1);

    pub fn new() -> Self {
        Self { millis: Arc::new(AtomicU64::new(1_000_000_000)) }
    }

    /// By one thread only: an addition that several threads may do takes longer.
    pub fn tick(&self) {
        self.millis.store(self.read_only() + Self::TICK.as_millis() as u64, Relaxed);
    }

    pub fn read(&self) -> u64 {
        black_box(Instant::now());
        self.read_only()
    }

    fn read_only(&self) -> u64 {
        self.millis.load(Relaxed)
    }
}

impl Default for Paced {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Paced {
    fn now(&self) -> u64 {
        self.read()
    }
}
