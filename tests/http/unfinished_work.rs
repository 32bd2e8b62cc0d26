//! How much work one caller can leave behind.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::body::Body;
use futures_util::FutureExt;
use http::{Request, Response, request};
use hyper::{client::conn::http2, server::conn::http2 as server};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use tokio::sync::Notify;
use tower::{Layer, ServiceExt};
use tower_idempotency::{BackgroundTasks, IdempotencyLayer, MemoryStore, scope};

use crate::{
    common::{Seen, see},
    faulty_bench::Log,
};

/// A caller that opens and resets streams, each a POST with a fresh key, starts no more handlers than it may leave
/// unfinished, beside the one whose stream is open. Other callers are served meanwhile.
#[tokio::test]
async fn reset_streams_of_one_caller_start_a_bounded_number_of_handlers() {
    let (started, starts) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let background_tasks = BackgroundTasks::new();
    let layer = IdempotencyLayer::new(MemoryStore::new()).background_tasks(background_tasks.clone());
    let handler = {
        let (started, starts) = (started.clone(), starts.clone());
        tower::service_fn(move |request: Request<_>| {
            let (started, starts) = (started.clone(), starts.clone());
            async move {
                if request.headers()["authorization"] == "Bearer ann" {
                    started.fetch_add(1, SeqCst);
                    starts.notify_one();
                    pending::<()>().await;
                }
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        })
    };
    let (near, far) = tokio::io::duplex(64 * 1024);
    let service = TowerToHyperService::new(layer.layer(handler));
    // The server's own bound on reset streams would end the connection first.
    let mut http = server::Builder::new(TokioExecutor::new());
    http.max_pending_accept_reset_streams(10_000).max_local_error_reset_streams(None);
    tokio::spawn(http.serve_connection(TokioIo::new(far), service));
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);

    let request = |caller: &str, key: usize| {
        let request = Request::post("http://shop/orders").header("Authorization", format!("Bearer {caller}"));
        request.header("Idempotency-Key", format!("key-{key}")).body(Body::empty()).unwrap()
    };
    let mut refused = 0;
    for key in 0..3_000 {
        client.ready().await.unwrap();
        tokio::select! {
            // Dropped, the stream is reset.
            () = starts.notified() => {}
            answer = client.send_request(request("ann", key)) => {
                let answer = answer.unwrap();
                assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"1".parse().unwrap()));
                refused += 1;
            }
        }
    }
    let started = started.load(SeqCst);
    assert_eq!(started + refused, 3_000);
    assert!((256..=260).contains(&started), "{started} handlers");
    assert!((256..=260).contains(&background_tasks.count()), "{} unfinished", background_tasks.count());
    assert_eq!(client.send_request(request("bob", 9_999)).await.unwrap().status(), 200);
}

/// Not even a client that sends a part of its body and stops holds anything for longer than its time.
#[tokio::test(start_paused = true)]
async fn a_body_that_stands_still_is_given_up() {
    for timeout in [None, Some(Duration::from_secs(5))] {
        let store = MemoryStore::new();
        let mut layer = IdempotencyLayer::new(store.clone()).route("orders");
        if let Some(timeout) = timeout {
            layer = layer.body_timeout(timeout);
        }
        let handler = tower::service_fn(async |_| Ok::<_, Infallible>(Response::new(Body::empty())));
        let (mut sender, body) = http_body_util::channel::Channel::<bytes::Bytes>::new(1);
        let request = Request::post("/orders").header("Idempotency-Key", "k").body(body).unwrap();
        let began = tokio::time::Instant::now();
        let answer = tokio::spawn(tower::ServiceExt::oneshot(layer.layer(handler), request));
        sender.send_data("half".into()).await.unwrap();
        let answer = answer.await.unwrap().unwrap();
        assert_eq!((answer.status().as_u16(), began.elapsed()), (408, timeout.unwrap_or(Duration::from_secs(60))));
        let key = tower_idempotency::store::RecordKey::new("orders", None, "k").unwrap();
        assert!(tower_idempotency::store::StoreAdmin::inspect(&store, &key).await.unwrap().is_none());
    }
}

/// A route whose handler never ends, and clients that leave at once.
struct Flood {
    layer: IdempotencyLayer,
    background_tasks: BackgroundTasks,
    log: Log,
    sent: usize,
}

impl Flood {
    fn new(adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        let (background_tasks, log) = (BackgroundTasks::new(), Log::default());
        let layer =
            IdempotencyLayer::new(MemoryStore::new()).background_tasks(background_tasks.clone()).observer(log.clone());
        Self { layer: adjust(layer), background_tasks, log, sent: 0 }
    }

    /// Sends requests with a new key each, of whose heads `head` makes something, until one is refused: how many were
    /// begun, and what the one receives.
    async fn until_refused(&mut self, head: impl Fn(request::Builder, usize) -> request::Builder) -> (usize, Seen) {
        for begun in 0.. {
            self.sent += 1;
            let request = Request::post("/orders").header("Idempotency-Key", format!("key-{}", self.sent));
            let request = head(request, begun).body(Body::empty()).unwrap();
            let handler = tower::service_fn(async |_| pending::<Result<Response<Body>, Infallible>>().await);
            // Polled once, and dropped if it has no answer.
            if let Some(answer) = ServiceExt::oneshot(self.layer.layer(handler), request).now_or_never() {
                return (begun, see(answer.unwrap()).await);
            }
        }
        unreachable!()
    }
}

/// The bounds by default, and what distinguishes a caller from others.
#[tokio::test]
async fn bounds_of_a_caller_a_layer_and_a_process() {
    let scoped = |layer: IdempotencyLayer| layer.scope(scope::header("X-Tenant"));
    let mut flood = Flood::new(scoped);
    for tenant in ["ann", "bob"] {
        let head = |request: request::Builder, number| {
            request.header("X-Tenant", tenant).header("Authorization", format!("Bearer {number}"))
        };
        let (begun, refused) = flood.until_refused(head).await;
        assert_eq!((begun, refused.status.as_u16()), (256, 429), "{tenant}");
        assert_eq!(refused.problem(), "too-many-unfinished");
    }
    assert_eq!(flood.log.count("refused: too-many-unfinished"), 2);
    assert_eq!(flood.background_tasks.count(), 512);

    // Of requests that do not tell whose they are, the layer takes more.
    for (what, unscoped) in [("without credentials", false), ("of an unscoped layer", true)] {
        let mut flood = Flood::new(|layer| if unscoped { layer.unscoped() } else { layer });
        let head = |request: request::Builder, number| {
            if unscoped { request.header("Authorization", format!("Bearer {number}")) } else { request }
        };
        let (begun, refused) = flood.until_refused(head).await;
        assert_eq!((begun, refused.status.as_u16()), (2_048, 429), "{what}");
        // Another layer goes on.
        let other = IdempotencyLayer::new(MemoryStore::new()).background_tasks(flood.background_tasks.clone());
        let mut flood = Flood { layer: if unscoped { other.unscoped() } else { other }, ..flood };
        assert_eq!(flood.until_refused(head).await.0, 2_048, "{what}");
    }

    let mut flood = Flood::new(|layer| layer);
    let everybody = |request: request::Builder, number| request.header("Authorization", format!("Bearer {number}"));
    let (begun, refused) = flood.until_refused(everybody).await;
    assert_eq!((begun, refused.status.as_u16(), refused.problem()), (10_000, 503, "server-busy".into()));
    assert_eq!(flood.log.count("refused: server-busy"), 1);
}
