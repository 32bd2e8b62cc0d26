//! Work whose client has left: its bounds, and the wait for its end.
//!
//! `admit` is called before each claim and refuses a caller with too much unfinished work. `spawn` takes over the rest
//! of a run; it never refuses, since the run has begun. `TaskSlot` is the slot in the counts and is given back on drop, so
//! that a panic, the time limit and the end of the runtime are all counted.
//!
//! One lock, over the counts by party. It is taken only if some work is in the background, and never while code of the
//! application runs.

mod party;
mod slot;

use std::{
    fmt,
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::runtime::Handle;

pub(super) use self::party::Bucket;
pub(crate) use self::party::Party;
use self::slot::{TaskCounts, TaskSlot, Unfinished};
use crate::value::{DropReason, RecordKey, Refusal, nonzero};

/// Work that goes on after its client has left, and records that a store could not take at once.
///
/// Background tasks run on the runtime that served their request. A task that has begun is not dropped because there
/// are too many, only after [a time](Self::max_duration); its claim lapses then. The number is bounded at the start: a
/// request is refused before it claims its key
///
/// - with 429 `too-many-unfinished` if its caller has left [256](Self::limit_per_caller) unfinished operations behind.
///   The caller is identified by the scope, or by the credentials if there is no scope;
/// - likewise if the caller is not identified, and the requests of that kind have left [2,048](Self::limit_per_layer)
///   behind at one layer;
/// - with 503 `server-busy` if there are [10,000](Self::limit) in all.
///
/// Claims that a store never answered, and that are released in the background, are background tasks too. There are as
/// many of them as an outage makes, so they are bounded by the same number, and counted apart from work. Each is
/// watched for a lease after the store's last failure, since the claim may still be on its way. A claim that is not
/// released lapses; on a route that runs at most once, an operation that never ran is then an `outcome-unknown`.
///
/// A server's graceful shutdown waits for its connections, not for background tasks. Await [`wait`](Self::wait)
/// after it, with a timeout of your choice. Otherwise the claims of background tasks stay running until their leases
/// lapse.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::BackgroundTasks;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let background_tasks = BackgroundTasks::new().limit(1_000).max_duration(Duration::from_secs(60));
/// // … `IdempotencyLayer::new(store).background_tasks(background_tasks.clone())`, serve, shut down …
/// let ended = tokio::time::timeout(Duration::from_secs(5), background_tasks.wait()).await;
/// assert!(ended.is_ok());
/// # }
/// ```
#[derive(Clone)]
pub struct BackgroundTasks {
    shared: Arc<TaskCounts>,
    limit: usize,
    per_caller: usize,
    per_layer: usize,
    time: Duration,
}

impl BackgroundTasks {
    /// Creates the default: up to 10,000 background tasks, 256 a caller, 2,048 a layer of callers that are not
    /// identified, of up to 15 minutes each.
    #[must_use]
    pub fn new() -> Self {
        let time = Duration::from_secs(15 * 60);
        Self { shared: Arc::default(), limit: 10_000, per_caller: 256, per_layer: 2_048, time }
    }

    /// Sets how many background tasks there may be in all before further requests are refused. Default: 10,000.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is 0.
    #[must_use]
    #[track_caller]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit: positive(limit), ..self }
    }

    /// Sets how many background tasks a caller may have before its further requests are refused. Default: 256.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is 0.
    #[must_use]
    #[track_caller]
    pub fn limit_per_caller(self, limit: usize) -> Self {
        Self { per_caller: positive(limit), ..self }
    }

    /// Sets how many background tasks there may be at a layer for requests whose caller is not identified, before
    /// further ones of that kind are refused: requests without scope and credentials, and all of an unscoped layer.
    /// Default: 2,048.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is 0.
    #[must_use]
    #[track_caller]
    pub fn limit_per_layer(self, limit: usize) -> Self {
        Self { per_layer: positive(limit), ..self }
    }

    /// Sets how long each background task may go on. Default: 15 minutes.
    ///
    /// # Panics
    ///
    /// Panics if `time` is zero.
    #[must_use]
    #[track_caller]
    pub fn max_duration(self, time: Duration) -> Self {
        let time = nonzero("time for background tasks", time);
        Self { time, ..self }
    }

    /// Returns how many background tasks there are now. Clones count together.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.work.load(Ordering::Acquire) + self.shared.releases.load(Ordering::Acquire)
    }

    /// Resolves when there is no background task.
    ///
    /// The future may be dropped, and the method called again, at any time.
    pub async fn wait(&self) {
        loop {
            let ended = self.shared.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Checks whether a request may begin work that its client might leave behind.
    ///
    /// As long as nothing is left behind, which is nearly always, this costs one look at a count.
    pub(super) fn admit(&self, party: &Party, key: &RecordKey) -> Result<(), Refusal> {
        let all = self.shared.work.load(Ordering::Acquire);
        if all == 0 {
            return Ok(());
        }
        if all >= self.limit {
            return Err(Refusal::ServerBusy);
        }
        let bucket = party.bucket(key);
        let most = if bucket.is_of_a_layer() { self.per_layer } else { self.per_caller };
        let own = self.shared.parties().get(&bucket).copied().unwrap_or(0);
        if own >= most { Err(Refusal::TooManyUnfinished) } else { Ok(()) }
    }

    /// Spawns `work` of a party on `runtime`, with a place of its own.
    ///
    /// `dropped` is called if the work does not end by itself, with the reason and the time that it had.
    pub(super) fn spawn<F>(
        &self,
        runtime: &Handle,
        bucket: Bucket,
        work: F,
        dropped: impl FnOnce(DropReason, Duration) + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shared.work.fetch_add(1, Ordering::AcqRel);
        *self.shared.parties().entry(bucket.clone()).or_default() += 1;
        self.run(runtime, TaskSlot { shared: self.shared.clone(), of: Some(bucket) }, work, dropped);
    }

    /// Spawns the release of a claim whose answer is not known, unless there are too many of them. Returns whether it
    /// was spawned.
    pub(super) fn spawn_release(&self, runtime: &Handle, release: impl Future<Output = ()> + Send + 'static) -> bool {
        let more = |count: usize| (count < self.limit).then_some(count + 1);
        let has_room = self.shared.releases.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok();
        if has_room {
            self.run(runtime, TaskSlot { shared: self.shared.clone(), of: None }, release, |_, _| ());
        }
        has_room
    }

    fn run<F>(
        &self,
        runtime: &Handle,
        place: TaskSlot,
        work: F,
        dropped: impl FnOnce(DropReason, Duration) + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let time = self.time;
        // Outside the task: a runtime that ends may drop a task that was never polled.
        let mut unfinished = Unfinished::new(dropped);
        runtime.spawn(async move {
            let _place = place;
            match tokio::time::timeout(time, work).await {
                Ok(()) => unfinished.finish(),
                Err(_) => unfinished.tell(DropReason::TimedOut),
            }
        });
    }
}

#[track_caller]
fn positive(limit: usize) -> usize {
    assert!(limit > 0, "a limit of 0 background tasks would refuse every request");
    limit
}

impl Default for BackgroundTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for BackgroundTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundTasks")
            .field("count", &self.count())
            .field("limit", &self.limit)
            .field("limit_per_caller", &self.per_caller)
            .field("limit_per_layer", &self.per_layer)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Caller;

    fn key() -> RecordKey {
        RecordKey::new("/orders", None, "7f0c").unwrap()
    }

    fn caller(byte: u8) -> Party {
        Party::Caller(Caller::from_parts(1, [byte; 16]))
    }

    async fn sleep(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    impl BackgroundTasks {
        fn leave(&self, party: &Party, seconds: u64) {
            self.spawn(&Handle::current(), party.bucket(&key()), sleep(seconds), |_, _| ());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn counted_awaited_and_bounded_in_time() {
        let background_tasks = BackgroundTasks::new().limit(1).max_duration(Duration::from_secs(60));
        let runtime = Handle::current();
        background_tasks.leave(&caller(1), 10);
        let (late, was_late) = tokio::sync::oneshot::channel();
        // What has begun is never dropped for its number.
        background_tasks
            .spawn(&runtime, caller(1).bucket(&key()), sleep(1000), |why, after| late.send((why, after)).unwrap());
        background_tasks.spawn_release(&runtime, sleep(1));
        background_tasks.spawn_release(&runtime, sleep(1));
        assert_eq!(background_tasks.count(), 3);
        let start = tokio::time::Instant::now();
        background_tasks.wait().await;
        assert_eq!(start.elapsed(), Duration::from_secs(60));
        assert_eq!(was_late.await, Ok((DropReason::TimedOut, Duration::from_secs(60))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_is_bounded_before_all_of_them_are() {
        let background_tasks = BackgroundTasks::new().limit(4).limit_per_caller(2).limit_per_layer(3);
        let (ann, bob, anybody) = (caller(1), caller(2), Party::Layer(7));
        background_tasks.leave(&ann, 10);
        assert_eq!(background_tasks.admit(&ann, &key()), Ok(()));
        background_tasks.leave(&ann, 20);
        assert_eq!(background_tasks.admit(&ann, &key()), Err(Refusal::TooManyUnfinished));
        assert_eq!((background_tasks.admit(&bob, &key()), background_tasks.admit(&anybody, &key())), (Ok(()), Ok(())));
        sleep(10).await;
        tokio::task::yield_now().await;
        assert_eq!(background_tasks.admit(&ann, &key()), Ok(()));
        for _ in 0..3 {
            assert_eq!(background_tasks.admit(&anybody, &key()), Ok(()));
            background_tasks.leave(&anybody, 10);
        }
        for party in [ann, bob, anybody] {
            assert_eq!(background_tasks.admit(&party, &key()), Err(Refusal::ServerBusy));
        }
    }

    #[test]
    fn a_runtime_that_ends_gives_the_places_back() {
        let background_tasks = BackgroundTasks::new();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (told, was_told) = std::sync::mpsc::channel();
        background_tasks.spawn(runtime.handle(), caller(1).bucket(&key()), std::future::pending(), move |why, _| {
            told.send(why).unwrap();
        });
        drop(runtime);
        assert_eq!(was_told.recv(), Ok(DropReason::Shutdown));
        assert_eq!((background_tasks.count(), background_tasks.shared.parties().len()), (0, 0));
    }
}
