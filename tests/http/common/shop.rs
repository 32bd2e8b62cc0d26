//! A service behind a layer, with everything that a test wants to look at.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use tokio::{task::yield_now, time::Instant};
use tower::{Layer, Service, service_fn, util::BoxCloneService};
use tower_idempotency::{
    BackgroundTasks, IdempotencyLayer, MemoryStore, Operation,
    service::{RequestBody, ResponseBody},
    store::{Record, RecordKey, StoreAdmin},
    testing::{Faults, FaultyStore},
};

use super::{
    Counter, Seen, see,
    steps::{
        Step::{self, Data, Pend, Trailer},
        Steps,
    },
    wire::Wire,
};

pub type Answer = Response<ResponseBody<Steps>>;
pub type Shopper = BoxCloneService<Request<Steps>, Answer, Infallible>;

pub const STORE_TIMEOUT: Duration = Duration::from_secs(5);
pub const LEASE: Duration = Duration::from_secs(30);
/// Longer than any background task: a lease, and the pauses between the releases of a pending claim.
pub const LATER: Duration = Duration::from_secs(120);

pub const REQUEST: &[Step] = &[Pend, Data("two "), Pend, Pend, Data("apples"), Pend, Trailer("x-sum", "1"), Pend];

/// After so many polls the request is there and its claim sent; if the store answers at once, the handler has begun.
pub const TO_THE_CLAIM: usize = 6;

/// What the handler answers once it has worked for a while.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub status: u16,
    /// The first attempt fails after its time.
    pub fails_first: bool,
    pub content_type: &'static str,
    pub body: &'static [Step],
    pub takes: Duration,
}

impl Order {
    pub const DONE: Self = Self {
        status: 201,
        fails_first: false,
        content_type: "text/plain",
        body: &[Pend, Data("do"), Pend, Pend, Data("ne"), Pend, Trailer("x-sum", "2"), Pend],
        takes: Duration::from_secs(25),
    };
}

/// How far the handler's runs came.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    pub ended: Counter,
    attempts: Arc<Mutex<Vec<u32>>>,
}

impl Runs {
    pub fn started(&self) -> usize {
        self.attempts().len()
    }

    pub fn attempts(&self) -> Vec<u32> {
        self.attempts.lock().unwrap().clone()
    }

    pub fn start(&self, attempt: u32) {
        self.attempts.lock().unwrap().push(attempt);
    }
}

pub struct Shop {
    pub store: MemoryStore,
    pub faults: Faults,
    pub background_tasks: BackgroundTasks,
    waiting: Arc<()>,
    pub runs: Runs,
    pub service: Shopper,
}

impl Shop {
    /// `over_a_wire`: what was sent to the store gets there, though its sender may have left.
    pub fn new(order: Order, over_a_wire: bool, adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        let runs = Runs::default();
        let handler = {
            let runs = runs.clone();
            move |request| work(request, order, runs.clone())
        };
        Self { runs, ..Self::with(over_a_wire, adjust, handler) }
    }

    pub fn with<F>(
        over_a_wire: bool,
        adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
        handler: impl Fn(Request<RequestBody<Steps>>) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Steps>> + Send + 'static,
    {
        let store = MemoryStore::new();
        let struck = FaultyStore::new(store.clone());
        let faults = struck.faults();
        let background_tasks = BackgroundTasks::new();
        let waiting = Arc::new(());
        let way = Wire { store: struck, far: over_a_wire, waiting: waiting.clone() };
        let layer = IdempotencyLayer::new(way)
            .background_tasks(background_tasks.clone())
            .store_timeout(STORE_TIMEOUT)
            .lease(LEASE);
        let layer = adjust(layer);
        let service = service_fn(move |request| {
            let answer = handler(request);
            async move { Ok(answer.await) }
        });
        let service = BoxCloneService::new(layer.layer(service));
        Self { store, faults, background_tasks, waiting, runs: Runs::default(), service }
    }

    pub fn call(&self) -> impl Future<Output = Answer> + Send + Unpin + use<> {
        self.send(request(REQUEST))
    }

    pub fn send(&self, request: Request<Steps>) -> impl Future<Output = Answer> + Send + Unpin + use<> {
        let mut service = self.service.clone();
        let answer = service.call(request);
        Box::pin(async move { answer.await.unwrap_or_else(|never| match never {}) })
    }

    /// Sends the request again while the answer has a `Retry-After`. Returns how long that took.
    pub async fn retry(&self) -> (Seen, Duration) {
        let begin = Instant::now();
        loop {
            let seen = look(self.call().await).await;
            let later = seen.status == 503 || seen.status == 409 && seen.problem() == "request-in-progress";
            assert!(begin.elapsed() < 10 * LATER, "stuck: {seen:?}");
            if !later {
                return (seen, begin.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// How many calls to the store wait for a change.
    pub fn waiting(&self) -> usize {
        // The layer has one, and this the other.
        Arc::strong_count(&self.waiting) - 2
    }

    pub async fn record(&self) -> Option<Record> {
        self.store.inspect(&record_key()).await.unwrap()
    }
}

/// Takes a body that breaks for an empty one.
pub async fn look(answer: Answer) -> Seen {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    see(Response::from_parts(parts, Full::new(body))).await
}

pub fn record_key() -> RecordKey {
    RecordKey::new("/orders", None, "key").unwrap()
}

pub fn request(body: &[Step]) -> Request<Steps> {
    Request::post("/orders").header("Idempotency-Key", "key").body(Steps::new(body)).unwrap()
}

async fn work(request: Request<RequestBody<Steps>>, order: Order, runs: Runs) -> Response<Steps> {
    let attempt = request.extensions().get::<Operation>().expect("an operation").attempt();
    runs.start(attempt);
    let body = request.into_body().collect().await.expect("a whole body");
    assert_eq!(body.trailers().map(|trailers| trailers["x-sum"].as_bytes()), Some(&b"1"[..]));
    assert_eq!(body.to_bytes(), "two apples");
    yield_now().await;
    tokio::time::sleep(order.takes).await;
    yield_now().await;
    runs.ended.next();
    let status = if order.fails_first && attempt == 1 { 500 } else { order.status };
    let answer = Response::builder().status(status).header(CONTENT_TYPE, order.content_type);
    answer.body(Steps::new(order.body)).unwrap()
}
