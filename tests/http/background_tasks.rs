//! Background tasks are bounded, counted, and independent of the moment at which clients leave.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    time::{Instant, sleep, timeout},
};
use tower_idempotency::{
    BackgroundTasks, Event, Observer,
    store::{State, StoreErrorKind, StoreVerb},
};

use crate::common::{
    Seen,
    shop::{Answer, LATER, LEASE, Order, STORE_TIMEOUT, Shop, TO_THE_CLAIM, look},
    steps::{Leaving, polls},
};

#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Those about clients that left.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observer for Log {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Detached { .. } => self.0.lock().unwrap().push("detached".to_owned()),
            Event::Dropped { after, .. } => self.0.lock().unwrap().push(format!("dropped after {after:?}")),
            _ => {}
        }
    }
}

fn shop(background_tasks: &BackgroundTasks) -> (Shop, Log) {
    let log = Log::default();
    let shop =
        Shop::new(Order::DONE, false, |layer| layer.background_tasks(background_tasks.clone()).observer(log.clone()));
    (shop, log)
}

/// A call whose handler has started.
async fn begin(shop: &Shop) -> impl Future<Output = Answer> + Send + Unpin + 'static + use<> {
    let mut call = shop.call();
    assert!(polls(&mut call, TO_THE_CLAIM, Leaving::Waiting).await.is_none());
    assert_eq!(shop.runs.started(), 1);
    call
}

/// What has begun goes on, however many there are; past their number nothing further begins.
#[tokio::test(start_paused = true)]
async fn past_their_number_requests_are_refused() {
    let background_tasks = BackgroundTasks::new().limit(2);
    let shops: Vec<_> = (0..4).map(|_| shop(&background_tasks)).collect();
    let mut begun = Vec::new();
    for (shop, _) in &shops[..3] {
        begun.push(begin(shop).await);
    }
    drop(begun);
    assert_eq!(background_tasks.count(), 3);
    let (last, _) = &shops[3];
    let refused = look(last.call().await).await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (503, "server-busy"));
    assert_eq!((last.runs.started(), last.record().await.is_none()), (0, true));
    background_tasks.wait().await;
    assert_eq!(last.retry().await.0, Seen::first(201, "done"));
    for (shop, log) in &shops[..3] {
        assert_eq!((log.take(), shop.runs.ended.get()), (vec!["detached".to_owned()], 1));
        assert_eq!(shop.retry().await.0, Seen::replay(201, "done"));
    }
}

#[tokio::test(start_paused = true)]
async fn past_their_time_they_are_dropped() {
    let time = Duration::from_secs(13);
    let background_tasks = BackgroundTasks::new().max_duration(time);
    let (shop, log) = shop(&background_tasks);
    drop(begin(&shop).await);
    let begun = Instant::now();
    background_tasks.wait().await;
    assert_eq!(begun.elapsed(), time);
    assert_eq!(log.take(), ["detached".to_owned(), format!("dropped after {time:?}")]);
    assert_eq!(shop.record().await.map(|record| record.state), Some(State::Running));
    assert_eq!(shop.retry().await.0, Seen::first(201, "done"));
    assert_eq!((shop.runs.attempts(), shop.runs.ended.get()), (vec![1, 2], 1));
    // Its last renewal was before it was dropped.
    assert!(begun.elapsed() < time + LEASE + Order::DONE.takes);
}

/// What it cannot record at once takes no second place.
#[tokio::test(start_paused = true)]
async fn one_whose_store_is_away_goes_on_in_its_place() {
    let background_tasks = BackgroundTasks::new().limit(1);
    let (shop, log) = shop(&background_tasks);
    shop.faults.on(StoreVerb::Settle).fail(StoreErrorKind::Unavailable);
    drop(begin(&shop).await);
    sleep(LATER).await;
    assert_eq!((shop.runs.ended.get(), background_tasks.count()), (1, 1));
    shop.faults.heal();
    timeout(STORE_TIMEOUT, background_tasks.wait()).await.expect("it is recorded");
    assert_eq!(shop.retry().await.0, Seen::replay(201, "done"));
    assert_eq!(log.take(), ["detached"]);
}

/// A claim whose client left before it was answered is one, too.
#[tokio::test(start_paused = true)]
async fn ghosts_are_bounded_as_well() {
    let background_tasks = BackgroundTasks::new().limit(1);
    let shops =
        [(); 2].map(|()| Shop::new(Order::DONE, false, |layer| layer.background_tasks(background_tasks.clone())));
    for shop in &shops {
        shop.faults.on(StoreVerb::Claim).once().after_effect().hang();
        let mut call = shop.call();
        assert!(polls(&mut call, TO_THE_CLAIM, Leaving::Waiting).await.is_none());
        drop(call);
    }
    assert_eq!(background_tasks.count(), 1);
    for (shop, most) in shops.iter().zip([Duration::from_secs(1), LEASE + STORE_TIMEOUT]) {
        assert_eq!(shop.runs.started(), 0);
        let (seen, after) = shop.retry().await;
        assert_eq!(seen, Seen::first(201, "done"));
        assert!(after.saturating_sub(Order::DONE.takes) <= most, "{after:?}");
    }
    background_tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn they_can_be_awaited_by_many_and_more_than_once() {
    let (shop, _) = shop(&BackgroundTasks::new());
    let background_tasks = BackgroundTasks::new();
    background_tasks.wait().await;
    let other = Shop::new(Order::DONE, false, |layer| layer.background_tasks(background_tasks.clone()));
    drop(begin(&other).await);
    // Those of another layer do not count.
    shop.background_tasks.wait().await;
    assert!(timeout(Order::DONE.takes / 2, background_tasks.wait()).await.is_err());
    let many: Vec<_> =
        (0..3).map(|_| background_tasks.clone()).map(|it| tokio::spawn(async move { it.wait().await })).collect();
    background_tasks.wait().await;
    for one in many {
        one.await.unwrap();
    }
    assert_eq!((background_tasks.count(), other.runs.ended.get()), (0, 1));
    background_tasks.wait().await;
}

/// Drops the call somewhere else than in its own runtime.
type Elsewhere = fn(Box<dyn Send>);

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_future_is_dropped() {
    let places: [(&str, Elsewhere); 3] = [
        ("a thread without a runtime", |call| drop(call)),
        ("another runtime", |call| runtime().block_on(async { drop(call) })),
        ("another runtime that ends", |call| {
            runtime().spawn(async { drop(call) });
        }),
    ];
    for (place, leave) in places {
        let background_tasks = BackgroundTasks::new();
        let (shop, log) = shop(&background_tasks);
        let call = Box::new(begin(&shop).await);
        thread::spawn(move || leave(call)).join().unwrap();
        assert_eq!(background_tasks.count(), 1, "{place}");
        timeout(LATER, background_tasks.wait()).await.expect(place);
        assert_eq!(shop.retry().await.0, Seen::replay(201, "done"), "{place}");
        assert_eq!(log.take(), ["detached"], "{place}");
    }
}

/// A claim on its way, a waiting duplicate and an attached handler leave no less quietly.
#[tokio::test(start_paused = true)]
async fn a_claim_on_its_way_can_be_dropped_anywhere() {
    let background_tasks = BackgroundTasks::new();
    let (shop, log) = shop(&background_tasks);
    shop.faults.on(StoreVerb::Claim).once().after_effect().hang();
    let mut call = shop.call();
    assert!(polls(&mut call, TO_THE_CLAIM, Leaving::Waiting).await.is_none());
    thread::spawn(move || drop(call)).join().unwrap();
    sleep(STORE_TIMEOUT).await;
    assert_eq!(shop.record().await.map(|record| record.state), Some(State::Released));
    assert_eq!((background_tasks.count(), log.take().len()), (0, 0));
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// A shutdown that does not wait loses the work, and nothing else.
#[test]
fn a_runtime_may_end_while_they_run() {
    let kinds = [runtime, || Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()];
    for runtime in kinds {
        let background_tasks = BackgroundTasks::new();
        let served = runtime();
        let (left, stays, kept) = served.block_on(async {
            let shops = [shop(&background_tasks), shop(&background_tasks), shop(&background_tasks)];
            drop(begin(&shops[0].0).await);
            tokio::spawn(begin(&shops[1].0).await);
            let kept = begin(&shops[2].0).await;
            let [left, stays, outlives] = shops;
            (left, stays, (kept, outlives))
        });
        assert_eq!(background_tasks.count(), 1);
        drop(served);
        // A future that outlives its runtime has none to leave its work to.
        let (call, outlives) = kept;
        drop(call);
        assert_eq!(background_tasks.count(), 0);
        for (shop, _) in [left, stays, outlives] {
            let record = self::runtime().block_on(shop.record()).expect("a record");
            assert_eq!((record.state, shop.runs.ended.get()), (State::Running, 0));
        }
    }
}

/// A service may be called before its future is brought into a runtime, as `block_on(service.call(..))` does.
#[test]
fn work_belongs_to_the_runtime_that_it_is_polled_in() {
    let background_tasks = BackgroundTasks::new();
    let (shop, log) = shop(&background_tasks);
    let mut call = shop.call();
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
        assert!(polls(&mut call, TO_THE_CLAIM, Leaving::Waiting).await.is_none());
        drop(call);
        assert_eq!(background_tasks.count(), 1);
        background_tasks.wait().await;
    });
    assert_eq!((shop.runs.ended.get(), log.take()), (1, vec!["detached".to_owned()]));
}
