//! A server whose handlers wait for a word from the test.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    middleware::{Next, from_fn},
    response::IntoResponse,
    routing::post,
};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc, watch},
    time::timeout,
};
use tower_idempotency::{
    BackgroundTasks, IdempotencyLayer, MemoryStore, Operation,
    store::{RecordKey, State, StoreAdmin},
};

use crate::common::frames::Frames;

/// How long anything may take before a test fails.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("{what}: not in time"))
}

#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) store: MemoryStore,
    pub(crate) background_tasks: BackgroundTasks,
    /// Lets this many handlers of `/gated` go on.
    pub(crate) gate: Arc<Semaphore>,
    seen: Arc<Seen>,
}

/// What the test can wait for.
#[derive(Default)]
struct Seen {
    /// Requests whose heads have come, and those among them that the server has not done with.
    requests: watch::Sender<(usize, usize)>,
    runs: watch::Sender<usize>,
    /// Handlers of `/gated` that were dropped half-way.
    dropped: watch::Sender<usize>,
    stream: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Site {
    pub(crate) async fn new(adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            address: listener.local_addr().unwrap(),
            store: MemoryStore::new(),
            background_tasks: BackgroundTasks::new(),
            gate: Arc::new(Semaphore::new(0)),
            seen: Arc::default(),
        };
        let layer = IdempotencyLayer::new(site.store.clone()).background_tasks(site.background_tasks.clone());
        let app = site.routes().layer(adjust(layer));
        let seen = site.seen.clone();
        let app = app.layer(from_fn(move |request: Request, next: Next| {
            let here = Here::new(seen.clone());
            async move {
                let response = next.run(request).await;
                drop(here);
                response
            }
        }));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        site
    }

    fn routes(&self) -> Router {
        let (site, gated, streaming) = (self.clone(), self.clone(), self.clone());
        Router::new()
            .route("/echo", post(move |request: Request| async move { site.echo(request).await }))
            .route("/gated", post(move |operation: Operation| async move { gated.gated(operation).await }))
            .route("/stream", post(move || async move { streaming.stream() }))
            .route("/trailers", post(|| async { ([("trailer", "x-checksum")], checksummed()) }))
    }

    /// Answers with the number of its run, what came, and the trailer `x-sum` that came behind it.
    async fn echo(&self, request: Request) -> String {
        let run = self.run();
        let body = request.into_body().collect().await.unwrap();
        let sum = body.trailers().and_then(|trailers| trailers.get("x-sum")?.to_str().ok()).unwrap_or("-").to_owned();
        format!("run {run}: {} {sum}", String::from_utf8(body.to_bytes().into()).unwrap())
    }

    async fn gated(&self, operation: Operation) -> String {
        let run = self.run();
        let unfinished = Unfinished(&self.seen);
        self.gate.acquire().await.unwrap().forget();
        std::mem::forget(unfinished);
        format!("run {run}, attempt {}", operation.attempt())
    }

    fn stream(&self) -> impl IntoResponse + use<> {
        self.run();
        let (sender, receiver) = mpsc::channel(1);
        *self.seen.stream.lock().unwrap() = Some(sender);
        ([("content-type", "text/event-stream")], Feed(receiver).boxed())
    }

    fn run(&self) -> usize {
        self.seen.runs.send_modify(|runs| *runs += 1);
        self.runs()
    }

    pub(crate) fn runs(&self) -> usize {
        *self.seen.runs.borrow()
    }

    /// Waits until handlers have begun this many times.
    pub(crate) async fn ran(&self, times: usize) {
        let mut runs = self.seen.runs.subscribe();
        within("a run", runs.wait_for(|&runs| runs >= times)).await.unwrap();
    }

    /// Waits until the heads of this many requests have come.
    pub(crate) async fn came(&self, heads: usize) {
        let mut requests = self.seen.requests.subscribe();
        within("a head", requests.wait_for(|(came, _)| *came >= heads)).await.unwrap();
    }

    /// Waits until the server has this many requests in hand.
    pub(crate) async fn in_hand(&self, number: usize) {
        let mut requests = self.seen.requests.subscribe();
        within("an end", requests.wait_for(|(_, in_hand)| *in_hand == number)).await.unwrap();
    }

    /// Waits until this many handlers were dropped half-way.
    pub(crate) async fn dropped(&self, times: usize) {
        let mut dropped = self.seen.dropped.subscribe();
        within("a drop", dropped.wait_for(|&dropped| dropped >= times)).await.unwrap();
    }

    pub(crate) fn were_dropped(&self) -> usize {
        *self.seen.dropped.borrow()
    }

    /// The writing end of the answer of `/stream`.
    pub(crate) fn writer(&self) -> mpsc::Sender<Bytes> {
        self.seen.stream.lock().unwrap().clone().expect("a stream")
    }

    pub(crate) async fn record(&self, path: &str, key: &str) -> Option<(State, bool)> {
        let record = self.store.inspect(&RecordKey::new(path, None, key).unwrap()).await.unwrap();
        record.map(|record| (record.state, record.payload.is_some()))
    }
}

fn checksummed() -> Body {
    Frames::of(["abc"]).trailers(&[("x-checksum", "abc")]).boxed()
}

/// A request that the server has in hand.
struct Here(Arc<Seen>);

impl Here {
    fn new(seen: Arc<Seen>) -> Self {
        seen.requests.send_modify(|(came, in_hand)| (*came, *in_hand) = (*came + 1, *in_hand + 1));
        Self(seen)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.requests.send_modify(|(_, in_hand)| *in_hand -= 1);
    }
}

struct Unfinished<'a>(&'a Seen);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.dropped.send_modify(|dropped| *dropped += 1);
    }
}

/// A body of what is sent to it; it breaks if an empty frame is sent.
pub(crate) struct Feed(pub(crate) mpsc::Receiver<Bytes>);

impl Feed {
    pub(crate) fn boxed(self) -> Body {
        Body::new(self)
    }
}

impl http_body::Body for Feed {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.0.poll_recv(cx).map(|sent| {
            let data = sent?;
            Some(if data.is_empty() { Err("broken off") } else { Ok(Frame::data(data)) })
        })
    }
}
