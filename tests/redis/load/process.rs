//! What each of the processes does.

use std::{
    env, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use axum::{Extension, Router, body::Body, extract::State, http::Request, routing::post};
use http_body_util::BodyExt;
use tokio::{task::JoinSet, time::sleep};
use tower::ServiceExt;
use tower_idempotency::{Event, IdempotencyLayer, Observer, Operation, RedisStore};

use super::{
    KEYS, LEASE, LEFT, STORE_TIMEOUT,
    log::{Log, millis, now},
};

/// How many operations of each lane are asked for at a time.
const AT_ONCE: usize = 6;

/// When a request was made.
#[derive(Clone, Copy)]
struct ClaimRequest(Duration);

/// An effect: when, of which operation, and which execution of all that there are.
async fn pay(
    State(log): State<Arc<Log>>,
    Extension(ClaimRequest(asked)): Extension<ClaimRequest>,
    operation: Operation,
) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let execution = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
    log.line(&["effect", operation.key(), &execution, &operation.attempt().to_string(), &millis(asked)]);
    let spread: usize = operation.key().parse().unwrap();
    sleep(Duration::from_millis(50 + spread as u64 * 37 % 200)).await;
    execution
}

/// Writes down what became of the claims.
struct Heard(Arc<Log>);

impl Observer for Heard {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Settled { key, .. } => self.0.line(&["settled", key.key()]),
            Event::StoreFailed { key, verb, error, .. } => {
                self.0.line(&["failed", key.key(), &verb.to_string(), &format!("{:?}", error.kind())]);
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is what the processes of a load run"]
async fn process() {
    let (url, path) = (env::var("LOAD_SERVER").unwrap(), PathBuf::from(env::var("LOAD_LOG").unwrap()));
    let log = Arc::new(Log::open(&path));
    watch(Arc::clone(&log));
    let told_to_end = Arc::new(AtomicBool::new(false));
    thread::spawn({
        let told_to_end = Arc::clone(&told_to_end);
        move || {
            io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
            told_to_end.store(true, Relaxed);
        }
    });

    // So that the store finds out, and not the layer, that a server hangs.
    let store = RedisStore::builder().command_timeout(STORE_TIMEOUT / 2).connect(&url).await.unwrap();
    let layer =
        IdempotencyLayer::new(store).lease(LEASE).store_timeout(STORE_TIMEOUT).observer(Heard(Arc::clone(&log)));
    let app = Router::new().route("/pay", post(pay)).layer(layer).with_state(Arc::clone(&log));
    let lanes: usize = env::var("LOAD_LANES").unwrap().parse().unwrap();
    let mut asking = JoinSet::new();
    for lane in 0..lanes {
        let (app, log, told_to_end) = (app.clone(), Arc::clone(&log), Arc::clone(&told_to_end));
        let keys = (0..).map(|n: usize| n.to_string()).filter(move |key| lane_of(key, lanes) == lane);
        asking.spawn(async move {
            let mut asking = JoinSet::new();
            for (count, key) in keys.enumerate() {
                if told_to_end.load(Relaxed) && count >= KEYS / lanes {
                    break;
                }
                if asking.len() == AT_ONCE {
                    asking.join_next().await.unwrap().unwrap();
                }
                asking.spawn(ask(app.clone(), Arc::clone(&log), key));
            }
            asking.join_all().await;
        });
    }
    asking.join_all().await;
}

/// Until there is an answer.
async fn ask(app: Router, log: Arc<Log>, key: String) {
    loop {
        let asked = now();
        let mut request = Request::post("/pay").header("Idempotency-Key", &key).body(Body::empty()).unwrap();
        request.extensions_mut().insert(ClaimRequest(asked));
        let answer = app.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        if status.is_success() {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            return log.line(&["answer", &key, std::str::from_utf8(&body).unwrap(), &millis(asked)]);
        }
        log.line(&["refused", &key, status.as_str(), &millis(asked)]);
        sleep(Duration::from_millis(25)).await;
    }
}

/// Writes down when this process, or all of the machine, stands still.
fn watch(log: Arc<Log>) {
    thread::spawn(move || {
        loop {
            let before = now();
            thread::sleep(LEFT / 10);
            if now() > before + LEFT / 2 {
                log.line(&["stood", "still", &millis(before)]);
            }
        }
    });
}

/// Operations whose records are on different servers do not wait for one another.
fn lane_of(key: &str, lanes: usize) -> usize {
    #[cfg(feature = "redis-cluster")]
    if lanes > 1 {
        return super::cluster::share(key);
    }
    let _ = (key, lanes);
    0
}
