//! The service: one route, and what stands before its handler.

use std::{future::pending, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{Response, StatusCode},
    middleware::{self, Next},
    response::IntoResponse,
    routing::post,
};
use sqlx::Decode;
use tokio::net::TcpListener;
use tower_idempotency::{
    IdempotencyLayer, MessageLogLayer, OnDuplicate, WhileRunning, fingerprint, key,
    policy::Reply,
    sql::{
        SqlStore, Tx,
        guard::{Bind, Connection, Inserted, RowState as _, Transition, Written},
    },
};

use crate::{
    Failure, MESSAGES,
    database::Database,
    shop::{ACCOUNT, ACCOUNTS, BALANCE, CENTS, ENTRIES, MESSAGE, Notice, ORDERS, Status},
    signature,
};

/// What the platform wants to read, or it sends again.
const SUCCESS: &str = "success";

/// How long a cache answers for a record before the database is asked again.
pub(crate) const FRONT_LIFE: Duration = Duration::from_secs(1);

/// The order whose handler stops half-way, for the play.
#[derive(Clone)]
struct StopWithin(Option<Arc<str>>);

pub(crate) async fn serve<D>(
    store: SqlStore<D>,
    front: Option<&str>,
    stop_within: Option<String>,
) -> Result<(), Failure>
where
    D: Database<Connection: Connection<Database = D>>,
    String: Bind<D::Connection>,
    i64: Bind<D::Connection> + for<'r> Decode<'r, D>,
{
    let log = store.message_log().table(MESSAGES)?;
    let layer = match front {
        None => IdempotencyLayer::transactional(store),
        #[cfg(feature = "redis")]
        Some(url) => {
            let redis = tower_idempotency::RedisStore::builder().namespace("payment_callback").connect(url).await?;
            let front = tower_idempotency::store::CachedStore::new(redis, store).max_age(FRONT_LIFE);
            IdempotencyLayer::transactional(front)
        }
        #[cfg(not(feature = "redis"))]
        Some(_) => return Err("--front: Redis needs the feature `redis`".into()),
    };
    let app = Router::new()
        .route("/notify", post(notified::<D>))
        .layer(Extension(StopWithin(stop_within.map(Into::into))))
        .layer(idempotent(layer))
        .layer(on_record(MessageLogLayer::new(log)))
        // Added last, so outermost: what does not verify comes no further.
        .layer(middleware::from_fn(verify));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

/// The first line: the signature, over the bytes as they came.
async fn verify(request: Request, next: Next) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(message) = to_bytes(body, 64 * 1024).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let signature = parts.headers.get(signature::HEADER).and_then(|value| value.to_str().ok());
    if !signature.is_some_and(|signature| signature::verifies(&message, signature)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(Request::from_parts(parts, Body::from(message))).await
}

/// The record of all that came in and is signed, for reconciliation: refused messages and duplicates too.
///
/// It is written before anything is done, by itself: what is done for a message that is refused is rolled back, and so
/// would be a message that was kept in the same transaction. What cannot be put on record is not done.
fn on_record(log: MessageLogLayer) -> MessageLogLayer {
    log.route("payment-notices").key(notice_key())
}

/// The merchant's own number. There is more than one notice about an order, so the status belongs to the key.
fn notice_key() -> key::KeyExtractor {
    key::all([key::json("/order"), key::json("/status")])
}

/// The second line: each notice about an order runs once, in one transaction with its record.
fn idempotent(layer: IdempotencyLayer) -> IdempotencyLayer {
    let say = |status, word: &'static str| {
        let mut response = Response::new(Bytes::from_static(word.as_bytes()));
        *response.status_mut() = status;
        Reply::fixed(response)
    };
    layer
        .route("payment-notices")
        .key(notice_key())
        // `sent` differs with each delivery; what counts must not.
        .fingerprint(fingerprint::json_only(["/order", "/status", "/cents", "/serial"]))
        // A request that gets this far is signed.
        .unscoped()
        .on_duplicate(OnDuplicate::Respond(say(StatusCode::OK, SUCCESS)))
        // It must not receive the word of success: the first may fail yet.
        .while_running(WhileRunning::Respond(say(StatusCode::SERVICE_UNAVAILABLE, "again")))
}

/// The third line: guards, in the transaction. The answer goes out after the commit.
///
/// Any answer that is not a success rolls everything back, the claim too, so that the next delivery runs.
async fn notified<D>(
    Extension(stop_within): Extension<StopWithin>,
    mut tx: Tx<D>,
    message: String,
) -> Result<&'static str, Refused>
where
    D: Database<Connection: Connection<Database = D>>,
    String: Bind<D::Connection>,
    i64: Bind<D::Connection> + for<'r> Decode<'r, D>,
{
    let notice: Notice = serde_json::from_str(&message).map_err(|_| Refused(StatusCode::BAD_REQUEST))?;
    let order = D::order(&mut tx, &notice.order).await?.ok_or(Refused(StatusCode::NOT_FOUND))?;
    if order.cents != notice.cents || notice.status == Status::Unpaid {
        return Err(Refused(StatusCode::CONFLICT));
    }
    let gain = notice.gain();
    let entry = ENTRIES.on(&mut *tx).set(ACCOUNT, order.account.clone()).set(CENTS, gain).set(MESSAGE, message);
    let number = entry.insert(notice.serial).await?;
    let order_has = ORDERS.on(&mut *tx).transition(notice.order.clone(), notice.status).await?;
    match (number, order_has) {
        // Of any number of deliveries this is one, and it goes on.
        (Inserted::New, Transition::Moved) => {}
        // It was acted upon, whatever became of the order since.
        (Inserted::AlreadyThere, Transition::AlreadyThere | Transition::Refused(_)) => return Ok(SUCCESS),
        // Paid twice, by two numbers; or one number for two orders. This is for a person to look at.
        (Inserted::New, Transition::AlreadyThere) | (Inserted::AlreadyThere, _) => {
            return Err(Refused(StatusCode::CONFLICT));
        }
        (_, refused) => return Err(Refused(refused.status())),
    }
    if gain != 0 {
        let enough = |balance: i64| balance.checked_add(gain).filter(|balance| *balance >= 0);
        match ACCOUNTS.on(&mut *tx).modify(order.account, BALANCE, enough).await? {
            Written::Done => {}
            refused => return Err(Refused(refused.status())),
        }
    }
    if stop_within.0.as_deref() == Some(&*notice.order) {
        println!("stopped within {} {}", notice.order, notice.status.as_str());
        pending::<()>().await;
    }
    Ok(SUCCESS)
}

struct Refused(StatusCode);

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Self {
        eprintln!("payment_callback: {error}");
        Self(StatusCode::SERVICE_UNAVAILABLE)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response<Body> {
        (self.0, "fail").into_response()
    }
}
