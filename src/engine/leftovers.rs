use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify};

/// Work that goes on after its client has left, and records that a store could not take at once.
///
/// Leftovers run on the runtime that served their request. They are bounded in number and time: past the number, the
/// work of a client that leaves is dropped; past the time, a leftover is. Either way the claim lapses.
///
/// Claims that a store never answered, and that are released in the background, are leftovers too. There are as many
/// of them as an outage makes, so they are bounded by the same number, and count apart from work. Each is watched for a
/// lease after the store's last failure, since the claim may still be on its way. One that is not released lapses; on a
/// route that runs at most once, an operation that never ran is then an `outcome-unknown`.
///
/// A server's graceful shutdown waits for its connections, not for leftovers. Await [`drained`](Self::drained) after
/// it, within a time of your choice, or their claims stay behind, running, until their leases lapse.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::Leftovers;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let leftovers = Leftovers::new().limit(1_000).time(Duration::from_secs(60));
/// // … `IdempotencyLayer::new(store).leftovers(leftovers.clone())`, serve, shut down …
/// let ended = tokio::time::timeout(Duration::from_secs(5), leftovers.drained()).await;
/// assert!(ended.is_ok());
/// # }
/// ```
#[derive(Clone)]
pub struct Leftovers {
    shared: Arc<Shared>,
    limit: usize,
    time: Duration,
}

#[derive(Default)]
struct Shared {
    work: AtomicUsize,
    ghosts: AtomicUsize,
    ended: Notify,
}

/// What is left over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Work, or its record.
    Work,
    /// A claim whose answer is not known.
    Ghost,
}

impl Shared {
    fn of(&self, kind: Kind) -> &AtomicUsize {
        match kind {
            Kind::Work => &self.work,
            Kind::Ghost => &self.ghosts,
        }
    }
}

impl Leftovers {
    /// Up to 10,000 leftovers, of up to 15 minutes each.
    #[must_use]
    pub fn new() -> Self {
        Self { shared: Arc::default(), limit: 10_000, time: Duration::from_secs(15 * 60) }
    }

    /// How many there may be at once.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// How long each may go on.
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// How many there are now. Clones count together.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.work.load(Ordering::Acquire) + self.shared.ghosts.load(Ordering::Acquire)
    }

    /// Resolves when there is no leftover.
    ///
    /// It may be dropped and called again at any time.
    pub async fn drained(&self) {
        loop {
            let ended = self.shared.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Goes on with `work` on `runtime`; gives `work` back to be dropped where there are too many.
    ///
    /// `too_long` is called where the time bound ends it.
    pub(super) fn adopt<F>(
        &self,
        runtime: &Handle,
        kind: Kind,
        work: F,
        too_long: impl FnOnce(Duration) + Send + 'static,
    ) -> Result<(), F>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(place) = self.place(kind) else { return Err(work) };
        let time = self.time;
        runtime.spawn(async move {
            let _place = place;
            if tokio::time::timeout(time, work).await.is_err() {
                too_long(time);
            }
        });
        Ok(())
    }

    fn place(&self, kind: Kind) -> Option<Place> {
        let more = |count: usize| (count < self.limit).then_some(count + 1);
        let taken = self.shared.of(kind).fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.is_ok().then(|| Place(self.shared.clone(), kind))
    }
}

impl Default for Leftovers {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers")
            .field("count", &self.count())
            .field("limit", &self.limit)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

/// One leftover's place in the count, given back however it ends: also with a runtime that shuts down.
struct Place(Arc<Shared>, Kind);

impl Drop for Place {
    fn drop(&mut self) {
        if self.0.of(self.1).fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bounded_counted_and_awaited() {
        let leftovers = Leftovers::new().limit(2).time(Duration::from_secs(60));
        let runtime = Handle::current();
        let sleep = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        assert!(leftovers.adopt(&runtime, Kind::Work, sleep(10), |_| ()).is_ok());
        let (late, was_late) = tokio::sync::oneshot::channel();
        assert!(leftovers.adopt(&runtime, Kind::Work, sleep(1000), |after| late.send(after).unwrap()).is_ok());
        assert!(leftovers.adopt(&runtime, Kind::Work, sleep(1), |_| ()).is_err());
        assert!(leftovers.adopt(&runtime, Kind::Ghost, sleep(1), |_| ()).is_ok());
        assert_eq!(leftovers.count(), 3);
        let start = tokio::time::Instant::now();
        leftovers.drained().await;
        assert_eq!(start.elapsed(), Duration::from_secs(60));
        assert_eq!(was_late.await, Ok(Duration::from_secs(60)));
    }

    #[test]
    fn a_runtime_that_ends_gives_the_places_back() {
        let leftovers = Leftovers::new();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        assert!(leftovers.adopt(runtime.handle(), Kind::Work, std::future::pending(), |_| ()).is_ok());
        drop(runtime);
        assert_eq!(leftovers.count(), 0);
    }
}
