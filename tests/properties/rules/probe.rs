use std::{cell::RefCell, convert::Infallible};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Operation,
    fingerprint::{self, FingerprintExtractor},
    key::KeyExtractor,
    service::RequestBody,
};

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

pub fn post(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post("/").body(Full::new(body.into())).expect("a request")
}

pub fn typed(content_type: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = post(body);
    request.headers_mut().insert("content-type", content_type.parse().expect("a media type"));
    request
}

/// What a key extractor makes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    Key(String),
    Missing,
    Invalid,
}

impl Told {
    /// What a key that was read becomes, once the rules for keys are applied.
    pub fn of(key: &str) -> Self {
        let fits = key.len() <= 255 && !key.trim().is_empty() && !key.chars().any(char::is_control);
        if fits { Self::Key(key.to_owned()) } else { Self::Invalid }
    }

    /// The same of a key in quotes, which may be blank.
    pub fn of_quoted(key: &str) -> Self {
        let is_blank = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte == b' ');
        if is_blank { Self::Key(key.to_owned()) } else { Self::of(key) }
    }
}

/// Asks a layer with this key extractor, which has an empty store.
pub fn told(key: KeyExtractor, request: Request<Full<Bytes>>) -> Told {
    let layer = layer().key(key).fingerprint(fingerprint::off());
    let response = send(&layer, request);
    if response.status() == 200 {
        let key = response.headers()["x-key"].as_bytes().to_vec();
        return Told::Key(String::from_utf8(key).expect("a key is text"));
    }
    assert_eq!(response.status(), 400, "{response:?}");
    match &*problem(&response) {
        "key-missing" => Told::Missing,
        "key-invalid" => Told::Invalid,
        other => panic!("{other}"),
    }
}

/// Returns whether two requests are one to this fingerprint; `None` if it refuses the first, since its body is invalid.
pub fn are_one(
    fingerprint: FingerprintExtractor,
    first: Request<Full<Bytes>>,
    second: Request<Full<Bytes>>,
) -> Option<bool> {
    let layer = layer().fingerprint(fingerprint);
    let keyed = |mut request: Request<Full<Bytes>>| {
        request.headers_mut().insert("idempotency-key", "k".parse().expect("a value"));
        send(&layer, request)
    };
    let first = keyed(first);
    if first.status() == 400 {
        assert_eq!(problem(&first), "body-invalid");
        return None;
    }
    assert_eq!(first.status(), 200, "{first:?}");
    let second = keyed(second);
    let replayed = second.headers().contains_key("idempotent-replayed");
    match second.status().as_u16() {
        200 if replayed => Some(true),
        422 => Some(false),
        400 => panic!("the first body is valid, the second is not: {second:?}"),
        _ => panic!("{second:?}"),
    }
}

/// A layer that nobody has used: of a route of its own, since a new store each time would take longer than the rest.
fn layer() -> IdempotencyLayer {
    const OF_ONE_STORE: usize = 1_000;
    thread_local!(static USED: RefCell<(usize, Option<IdempotencyLayer>)> = const { RefCell::new((0, None)) });
    USED.with_borrow_mut(|(used, layer)| {
        if *used % OF_ONE_STORE == 0 {
            *layer = Some(IdempotencyLayer::new(MemoryStore::new()));
        }
        *used += 1;
        layer.clone().expect("it is there").route(used.to_string())
    })
}

/// The handler answers with the key that it sees, and with the body that it got.
fn send(layer: &IdempotencyLayer, request: Request<Full<Bytes>>) -> Response<Bytes> {
    let handler = service_fn(|request: Request<RequestBody<Full<Bytes>>>| async {
        let operation: &Operation = request.extensions().get().expect("an operation");
        let response = Response::builder().header("x-key", operation.key().as_bytes());
        let body = request.into_body().collect().await.expect("a whole body").to_bytes();
        Ok::<_, Infallible>(response.body(Full::new(body)).expect("a response"))
    });
    let sent = request.body().clone();
    block_on(async {
        let response = layer.layer(handler).oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole answer").to_bytes();
        if parts.status == 200 && !parts.headers.contains_key("idempotent-replayed") {
            let sent = sent.collect().await.expect("a whole body").to_bytes();
            assert_eq!(body, sent, "the handler got another body");
        }
        Response::from_parts(parts, body)
    })
}

/// Returns the name of the problem in a refusal.
pub fn problem(refusal: &Response<Bytes>) -> String {
    let problem: Value = serde_json::from_slice(refusal.body()).expect("a problem document");
    assert_eq!(problem["status"], refusal.status().as_u16());
    let kind = problem["type"].as_str().expect("a type");
    kind.rsplit_once('#').expect("a name").1.to_owned()
}
