//! A service whose requests are logged.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::{Extension, State},
    http::{HeaderMap, Request, StatusCode, request},
    response::Response,
    routing::post,
};
use http_body_util::BodyExt;
use sqlx::Pool;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MessageLogLayer, Operation,
    service::MessageId,
    sql::{
        SqlStore,
        message_log::{LoggedMessage, MessageFilter, MessageLog},
    },
};

use crate::database::TestDatabase;

pub(crate) struct Service<D: TestDatabase> {
    pub(crate) store: SqlStore<D>,
    pub(crate) log: MessageLog<D>,
    pub(crate) place: Arc<D::Place>,
    pool: Pool<D>,
    seen: Seen,
}

/// The bodies that the handler has had, and the ids of their messages.
pub(crate) type Seen = Arc<Mutex<Vec<(String, Option<String>)>>>;

impl<D: TestDatabase> Service<D> {
    pub(crate) async fn start() -> Self {
        let place = D::place().await;
        let pool = D::connect_patiently(&D::url(&place), 8).await;
        let store = SqlStore::<D>::new(pool.clone());
        let log = store.message_log();
        store.migrate().await.unwrap();
        log.migrate().await.unwrap();
        let service = Self { store, log, place, pool, seen: Seen::default() };
        service.run("CREATE TABLE effects (name VARCHAR(80) NOT NULL)").await;
        service
    }

    pub(crate) fn layer(&self) -> MessageLogLayer {
        MessageLogLayer::new(self.log.clone())
    }

    /// A route in transaction mode, behind the log.
    pub(crate) fn app(&self, log: MessageLogLayer) -> Router {
        let layer = IdempotencyLayer::transactional(self.store.clone()).unscoped();
        Router::new().route("/pay/{order}", post(pay::<D>)).layer(layer).layer(log).with_state(Arc::clone(&self.seen))
    }

    pub(crate) async fn run(&self, text: &str) {
        D::say(&mut *self.pool.acquire().await.unwrap(), text).await.unwrap();
    }

    pub(crate) async fn effects(&self) -> i64 {
        D::tell(&mut *self.pool.acquire().await.unwrap(), "SELECT COUNT(*) FROM effects").await.unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<(String, Option<String>)> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) async fn messages(&self) -> Vec<LoggedMessage> {
        self.log.list(&MessageFilter::new(), 100).await.unwrap()
    }

    /// The only message.
    pub(crate) async fn message(&self) -> LoggedMessage {
        let mut messages = self.messages().await;
        assert_eq!(messages.len(), 1);
        messages.remove(0)
    }
}

/// Pays in the transaction of the claim, and ends as the request asks for.
async fn pay<D: TestDatabase>(
    State(seen): State<Seen>,
    id: Option<Extension<MessageId>>,
    operation: Operation,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let id = id.map(|Extension(id)| id.as_str().to_owned());
    seen.lock().unwrap().push((body, id));
    let mut tx = operation.transaction::<D>().unwrap();
    D::say(&mut tx, "INSERT INTO effects VALUES ('paid')").await.unwrap();
    match headers.get("x-do").map_or("201", |told| told.to_str().unwrap()) {
        "panic" => panic!("told to panic"),
        "hang" => std::future::pending().await,
        status => status.parse().unwrap(),
    }
}

pub(crate) fn request(key: &str) -> request::Builder {
    Request::post("/pay/7?currency=EUR").header("idempotency-key", key)
}

/// The status and the body of the answer.
pub(crate) async fn send(app: &Router, request: request::Builder, body: impl Into<Body>) -> (u16, String) {
    let (head, body) = answer(app, request, body).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

pub(crate) async fn answer(app: &Router, request: request::Builder, body: impl Into<Body>) -> Response {
    app.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap()
}
