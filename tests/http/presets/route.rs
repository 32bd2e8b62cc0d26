use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::post,
};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation};

use crate::{common::Counter, presets::platforms::Platform};

/// A route with the preset, whose handler is controlled from outside.
pub(crate) struct Route {
    pub(crate) platform: &'static Platform,
    pub(crate) app: Router,
    pub(crate) runs: Counter,
    /// The handler takes one for each run.
    pub(crate) go: Arc<Semaphore>,
}

impl Route {
    pub(crate) fn new(platform: &'static Platform) -> Self {
        Self::with(platform, |layer| layer)
    }

    pub(crate) fn with(platform: &'static Platform, adjust: fn(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        let runs = Counter::default();
        let go = Arc::new(Semaphore::new(0));
        let handler = {
            let (runs, go) = (runs.clone(), go.clone());
            move |operation: Operation, request: Request| async move {
                let run = runs.next();
                go.acquire().await.unwrap().forget();
                let status = request.headers()["x-status"].to_str().unwrap().parse::<u16>().unwrap();
                let body = request.headers()["x-body"].to_str().unwrap().to_owned();
                let seen = request.into_body().collect().await.unwrap().to_bytes();
                assert!(!seen.is_empty() || platform.body.is_empty(), "{}", platform.name);
                (
                    StatusCode::from_u16(status).unwrap(),
                    [
                        ("x-run", run.to_string()),
                        ("x-key", operation.key().to_owned()),
                        ("x-scope", operation.scope().unwrap_or_default().to_owned()),
                    ],
                    body,
                )
                    .into_response()
            }
        };
        let layer = adjust(IdempotencyLayer::new(MemoryStore::new()).preset((platform.preset)()));
        Self { platform, app: Router::new().route("/hook", post(handler).layer(layer)), runs, go }
    }

    pub(crate) async fn send(&self, headers: &[(&str, String)], body: String, answer: (u16, &str)) -> Response {
        let mut request = Request::post("/hook")
            .header("Content-Type", self.platform.content_type)
            .header("X-Status", answer.0)
            .header("X-Body", answer.1);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        self.app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
    }

    pub(crate) async fn deliver(&self, id: &str, delivery: u8, answer: (u16, &str)) -> Response {
        let fill = |text: &str| text.replace("ID", id).replace("TRY", &delivery.to_string());
        let headers: Vec<_> = self.platform.headers.iter().map(|(name, value)| (*name, fill(value))).collect();
        self.send(&headers, fill(self.platform.body), answer).await
    }

    pub(crate) async fn assert_done(&self, answer: Response) {
        let (status, content_type, body) = self.platform.done;
        let name = self.platform.name;
        assert_eq!(answer.status(), status, "{name}");
        let found = answer.headers().get("content-type").map(|value| value.to_str().unwrap());
        assert_eq!(found.and_then(|found| found.split(';').next()), content_type, "{name}");
        assert!(!answer.headers().contains_key("x-run"), "{name}: the handler's own");
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), body, "{name}");
    }

    pub(crate) async fn assert_again(&self, answer: Response) {
        let (status, part) = self.platform.again;
        let name = self.platform.name;
        assert_eq!(answer.status(), status, "{name}");
        assert!(answer.headers().contains_key(RETRY_AFTER), "{name}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(part), "{name}: {body:?}");
    }

    pub(crate) fn of(name: &str) -> Self {
        Self::new(super::platforms::named(name))
    }
}
