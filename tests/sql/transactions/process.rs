//! A route in transaction mode whose handler does what the request says.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Request, StatusCode, request},
    response::{IntoResponse, Response},
    routing::post,
};
use http_body_util::BodyExt;
use sqlx::Pool;
use tokio::sync::Semaphore;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, Operation,
    sql::{NoTransaction, SqlStore, Tx},
};

use crate::database::TestDatabase;

/// A process: a store and a route.
pub(crate) struct Process<D: TestDatabase> {
    pub(crate) store: SqlStore<D>,
    pub(crate) handler: Arc<Handler<D>>,
    app: Router,
    place: Arc<D::Place>,
}

pub(crate) struct Handler<D: TestDatabase> {
    pool: Pool<D>,
    pub(crate) started: Semaphore,
    pub(crate) gate: Semaphore,
    pub(crate) kept: Mutex<Vec<Tx<D>>>,
}

impl<D: TestDatabase> Clone for Process<D> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            handler: Arc::clone(&self.handler),
            app: self.app.clone(),
            place: Arc::clone(&self.place),
        }
    }
}

impl<D: TestDatabase> Process<D> {
    pub(crate) async fn start(place: &Arc<D::Place>) -> Self {
        Self::with(place, 8, |layer| layer).await
    }

    pub(crate) async fn with(
        place: &Arc<D::Place>,
        connections: u32,
        adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
    ) -> Self {
        Self::on(place, D::pool(place, connections).await, adjust).await
    }

    pub(crate) async fn on(
        place: &Arc<D::Place>,
        pool: Pool<D>,
        adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
    ) -> Self {
        Self::of(place, SqlStore::<D>::new(pool), adjust).await
    }

    pub(crate) async fn of(
        place: &Arc<D::Place>,
        store: SqlStore<D>,
        adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
    ) -> Self {
        store.migrate().await.unwrap();
        let pool = store.pool().clone();
        let mut connection = pool.acquire().await.unwrap();
        D::say(&mut connection, "CREATE TABLE IF NOT EXISTS effects (name VARCHAR(80) NOT NULL)").await.unwrap();
        drop(connection);
        let (started, gate) = (Semaphore::new(0), Semaphore::new(0));
        let handler = Arc::new(Handler { pool, started, gate, kept: Mutex::default() });
        let layer = adjust(IdempotencyLayer::transactional(store.clone()));
        let app = Router::new().route("/", post(handle::<D>).layer(layer)).with_state(Arc::clone(&handler));
        Self { store, handler, app, place: Arc::clone(place) }
    }

    /// The status, and what a replay would show: whether it is one, and the attempt.
    pub(crate) async fn post(&self, key: &str, told: &str) -> Told {
        self.send(key, told, "").await
    }

    pub(crate) async fn send(&self, key: &str, told: &str, body: impl Into<Body>) -> Told {
        self.ask(Request::post("/"), key, told, body.into()).await
    }

    /// As `post`, with credentials of this user's.
    pub(crate) async fn post_as(&self, user: &str, key: &str, told: &str) -> Told {
        let request = Request::post("/").header("authorization", format!("Bearer {user}"));
        self.ask(request, key, told, Body::empty()).await
    }

    async fn ask(&self, request: request::Builder, key: &str, told: &str, body: Body) -> Told {
        let request = request.header("idempotency-key", key).header("x-do", told);
        let response = self.app.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (status, replayed) = (response.status(), response.headers().contains_key("idempotent-replayed"));
        let whole = response.into_body().collect().await;
        let body = whole.map(|whole| String::from_utf8(whole.to_bytes().to_vec()).unwrap());
        Told { status, replayed, body: body.unwrap_or_else(|error| error.to_string()) }
    }

    pub(crate) fn spawn(&self, key: &str, told: &str) -> tokio::task::JoinHandle<Told> {
        let (process, key, told) = (self.clone(), key.to_owned(), told.to_owned());
        tokio::spawn(async move { process.post(&key, &told).await })
    }

    /// Waits until a handler has come to its `gate`.
    pub(crate) async fn started(&self) {
        self.handler.started.acquire().await.unwrap().forget();
    }

    /// Lets a handler through its `gate`.
    pub(crate) fn go_on(&self) {
        self.handler.gate.add_permits(1);
    }

    pub(crate) async fn effects(&self, key: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) FROM effects WHERE name = '{key}'")).await
    }

    pub(crate) async fn number(&self, text: &str) -> i64 {
        let mut connection = self.handler.pool.acquire().await.unwrap();
        D::tell(&mut connection, text).await.unwrap()
    }

    pub(crate) async fn run(&self, text: &str) {
        let mut connection = self.handler.pool.acquire().await.unwrap();
        D::say(&mut connection, text).await.unwrap();
    }

    pub(crate) async fn records(&self) -> i64 {
        self.number("SELECT COUNT(*) FROM idempotency_records").await
    }

    /// Nothing has stayed: no effect, no record, and the key can be used.
    pub(crate) async fn is_as_new(&self, key: &str) {
        for tries in 0.. {
            let told = self.post(key, "insert").await;
            if told.status == StatusCode::CREATED {
                assert_eq!(told.body, "1", "the first attempt");
                break;
            }
            // What was left to the database to roll back takes it a moment.
            assert!(told.status == StatusCode::CONFLICT && tries < 200, "{told:?}");
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert_eq!(self.effects(key).await, 1);
    }
}

#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: StatusCode,
    pub(crate) replayed: bool,
    pub(crate) body: String,
}

impl Told {
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, name: &str) {
        self.is(status);
        assert!(self.body.contains(&format!("#{name}")), "{self:?}");
    }
}

/// What a handler does without its transaction.
const WITHOUT: &[&str] = &[
    "nothing",
    "gate",
    "status",
    "second",
    "break",
    "long",
    "panic",
    "child",
    "began",
    "keep-answer",
    "read",
    "body",
    "stream",
];

async fn handle<D: TestDatabase>(
    State(handler): State<Arc<Handler<D>>>,
    operation: Operation,
    request: Request<Body>,
) -> Response {
    let (head, body) = request.into_parts();
    let (headers, mut body) = (head.headers, Some(body));
    let (key, mut tx) = (operation.key().to_owned(), None);
    let mut status = StatusCode::CREATED;
    let mut text = operation.attempt().to_string();
    for step in headers["x-do"].to_str().unwrap().split(';') {
        let (step, value) = step.split_once('=').unwrap_or((step, ""));
        if !WITHOUT.contains(&step) && tx.is_none() {
            tx = Some(operation.transaction::<D>().unwrap());
        }
        let connection = tx.as_deref_mut();
        match (step, connection) {
            ("nothing", _) => {}
            ("read", _) => {
                assert!(operation.is_duplicate());
                assert_eq!(operation.transaction::<D>().unwrap_err(), NoTransaction::Duplicate);
            }
            ("insert", Some(connection)) => {
                if D::say(connection, &format!("INSERT INTO effects VALUES ('{key}')")).await.is_err() {
                    return StatusCode::BAD_GATEWAY.into_response();
                }
            }
            ("error", Some(connection)) => drop(D::say(connection, "SELECT * FROM nowhere").await),
            ("swallow", Some(connection)) => drop(D::say(connection, value).await),
            ("run", Some(connection)) => D::say(connection, value).await.unwrap(),
            ("savepoint", Some(connection)) => D::open_savepoint(connection).await,
            ("twice", _) => {
                let error = operation.transaction::<D>().unwrap_err();
                assert_eq!(error, NoTransaction::Taken);
            }
            ("keep", _) => handler.kept.lock().unwrap().extend(tx.take()),
            ("gate", _) => {
                handler.started.add_permits(1);
                handler.gate.acquire().await.unwrap().forget();
            }
            ("second", _) => {
                let mut second = handler.pool.acquire().await.unwrap();
                D::say(&mut second, "SELECT 1").await.unwrap();
            }
            ("child", _) => text = operation.child_key("bank"),
            ("began", _) => operation.began(),
            ("stream", _) => operation.stream(),
            ("keep-answer", _) => operation.keep(),
            ("body", _) => {
                let whole = body.take().unwrap().collect().await;
                text = whole.map_or_else(|_| "broke".to_owned(), |whole| format!("{} bytes", whole.to_bytes().len()));
            }
            ("status", _) => status = value.parse().unwrap(),
            ("long", _) => return (status, "x".repeat(value.parse().unwrap())).into_response(),
            ("break", _) => {
                let frames = [Ok(Bytes::from("half")), Err(std::io::Error::other("broken"))];
                return Body::from_stream(futures_util::stream::iter(frames)).into_response();
            }
            ("panic", _) => panic!("told to panic"),
            other => unreachable!("{}", other.0),
        }
    }
    (status, text).into_response()
}
