use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header::RETRY_AFTER};
use http_body_util::Full;
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{IdempotencyLayer, Operation, service::RequestBody};

use crate::common::{Counter, see};

/// A request, and what its handler does if it comes to that.
#[derive(Clone, Debug)]
pub struct Ask {
    key: String,
    body: &'static str,
    does: Does,
}

#[derive(Clone, Debug)]
struct Does {
    takes: Duration,
    end: End,
}

/// How the handler ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Answers(u16),
    /// Acts, unless it may have lost its claim; then it leaves all to the next try.
    Acts,
    Panics,
    Fails,
}

/// A request whose handler answers 201 at once.
pub fn ask(key: &str) -> Ask {
    Ask { key: key.to_owned(), body: "one", does: Does { takes: Duration::ZERO, end: End::Answers(201) } }
}

impl Ask {
    pub fn body(self, body: &'static str) -> Self {
        Self { body, ..self }
    }

    pub fn takes(mut self, takes: Duration) -> Self {
        self.does.takes = takes;
        self
    }

    pub fn ends(mut self, end: End) -> Self {
        self.does.end = end;
        self
    }
}

/// What handlers did.
#[derive(Clone, Debug, Default)]
pub struct Handler {
    pub runs: Counter,
    pub acts: Counter,
    /// Attempts of the runs, in their order, with a `t` for a takeover; `-` for a run without protection.
    attempts: Arc<Mutex<Vec<String>>>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    /// Which run learned at what time that it had lost its claim.
    lost: Arc<Mutex<Vec<(usize, Instant)>>>,
}

impl Handler {
    pub fn runs(&self) -> usize {
        self.runs.get()
    }

    pub fn attempts(&self) -> String {
        self.attempts.lock().unwrap().join(" ")
    }

    /// How many ran at once, at most.
    pub fn at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub fn lost(&self, since: Instant) -> Vec<(usize, Duration)> {
        self.lost.lock().unwrap().iter().map(|&(run, at)| (run, at - since)).collect()
    }

    async fn run(self, does: Does, operation: Option<Operation>) -> Result<Response<Full<Bytes>>, &'static str> {
        let run = self.runs.next();
        let _running = Running::new(&self);
        let attempt = operation.as_ref().map_or("-".to_owned(), |operation| {
            format!("{}{}", operation.attempt(), if operation.is_takeover() { "t" } else { "" })
        });
        self.attempts.lock().unwrap().push(attempt);
        if !does.takes.is_zero() {
            let end = Instant::now() + does.takes;
            let lost = async {
                match &operation {
                    Some(operation) => operation.lost().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep(does.takes) => {}
                () = lost => self.lost.lock().unwrap().push((run, Instant::now())),
            }
            tokio::time::sleep_until(end).await;
        }
        match does.end {
            End::Answers(status) => {
                Ok(Response::builder().status(status).body(Full::from(format!("run {run}"))).unwrap())
            }
            End::Acts if operation.as_ref().is_some_and(Operation::is_lost) => {
                operation.iter().for_each(Operation::discard);
                Ok(Response::builder().status(503).body(Full::from(format!("run {run} refrains"))).unwrap())
            }
            End::Acts => {
                self.acts.next();
                Ok(Response::builder().status(201).body(Full::from(format!("run {run}"))).unwrap())
            }
            End::Panics => panic!("a handler that panics"),
            End::Fails => Err("a handler that fails"),
        }
    }
}

/// Counts a run for as long as it goes on.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(handler: &Handler) -> Self {
        let running = handler.running.fetch_add(1, Ordering::SeqCst) + 1;
        handler.most.fetch_max(running, Ordering::SeqCst);
        Self(handler.running.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a client received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Status, then the problem's name or else the body, then what else there is: `409 request-in-progress, retry after
    /// 5`, `201 run 1, replayed`.
    pub line: String,
    /// When, from the bench's beginning.
    pub at: Duration,
}

pub async fn send(layer: IdempotencyLayer, handler: Handler, begin: Instant, ask: Ask) -> Told {
    let service = layer.layer(service_fn(move |mut request: Request<RequestBody<Full<Bytes>>>| {
        let does = request.extensions_mut().remove::<Does>().expect("something to do");
        handler.clone().run(does, request.extensions_mut().remove())
    }));
    let mut request = Request::post("/orders").header("Idempotency-Key", &ask.key);
    request.extensions_mut().unwrap().insert(ask.does);
    let request = request.body(Full::from(ask.body)).unwrap();
    let line = match service.oneshot(request).await {
        Ok(response) => line(response).await,
        Err(error) => error.to_owned(),
    };
    Told { line, at: begin.elapsed() }
}

async fn line<B>(response: Response<B>) -> String
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let problem = response.headers().get("content-type").is_some_and(|it| it == "application/problem+json");
    let retry_after = response.headers().get(RETRY_AFTER).map(|it| it.to_str().unwrap().to_owned());
    let seen = see(response).await;
    let status = seen.status.as_u16();
    let what = if problem { seen.problem() } else { seen.body.clone() };
    let retry_after = retry_after.map(|seconds| format!(", retry after {seconds}")).unwrap_or_default();
    let replayed = if seen.replayed { ", replayed" } else { "" };
    format!("{status} {what}{retry_after}{replayed}")
}
