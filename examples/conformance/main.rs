//! The crate seen from the wire: a server that mounts the layer on fixed routes, each with a policy of its own, and a
//! handler that does what the request asks for. A client that knows nothing of the Rust API can check with it what
//! the crate promises.
//!
//! ```console
//! $ cargo run --example conformance -- --listen 127.0.0.1:3000 --lease-ms 2000
//! $ curl http://127.0.0.1:3000/replay -H 'Idempotency-Key: 1' -H 'X-Do: status=202;delay=500' -d hello
//! $ curl http://127.0.0.1:3000/executions
//! ```

mod answer;
mod executions;
mod flags;
mod handler;
mod instructions;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod transfer;

use std::{
    env,
    error::Error,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderValue, Method, Response, StatusCode, header::CONTENT_TYPE},
    routing::{get, post, put},
    serve::ListenerExt,
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::timeout,
};
#[cfg(feature = "mysql")]
use tower_idempotency::MySqlStore;
#[cfg(feature = "postgres")]
use tower_idempotency::PostgresStore;
#[cfg(feature = "redis")]
use tower_idempotency::RedisStore;
#[cfg(feature = "sqlite")]
use tower_idempotency::SqliteStore;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use tower_idempotency::sql::SqlStore;
use tower_idempotency::{
    AfterCrash, BackgroundTasks, IdempotencyLayer, Keep, MemoryStore, OnDuplicate, TokenLayer, Tokens, WhileRunning,
    fingerprint, key, policy::Reply, preset, scope, store::StoreAdmin,
};

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use self::transfer::Transfer;
use self::{
    executions::Executions,
    flags::Flags,
    handler::{Server, abandoned, executions, handle},
};

/// How long running handlers have, once the server was asked to end.
const GRACE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse(env::args().skip(1))?;
    let background_tasks = BackgroundTasks::new();
    let told = |layer: IdempotencyLayer| {
        layer
            .retention(flags.retention)
            .lease(flags.lease)
            .store_timeout(flags.store_timeout)
            .background_tasks(background_tasks.clone())
    };
    let (store, transfer) = open(&flags, &told).await?;
    let executions = Executions::new(flags.effects.as_deref())?;
    let base = told(IdempotencyLayer::new(store.clone()));
    let tokens = Tokens::new(store.clone()).lifetime(flags.token_life);
    let layer = |purpose: &str| {
        tokens
            .layer(purpose)
            .principal(scope::header("X-User").optional())
            .retention(flags.retention)
            .lease(flags.lease)
            .store_timeout(flags.store_timeout)
            .background_tasks(background_tasks.clone())
    };
    let app = routes(&base, layer("order"), layer("other"))
        .merge(transfer)
        .with_state(Arc::new(Server { store, executions }));

    // Before the address is printed, so that a client that knows it can end the server.
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(&flags.listen).await.map_err(|error| format!("{}: {error}", flags.listen))?;
    println!("listening on http://{}", listener.local_addr()?);
    io::stdout().flush()?;

    let listener = listener.tap_io(|connection| {
        // An answer of two small segments would wait for the client's delayed acknowledgement.
        let _ = connection.set_nodelay(true);
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(stopped).into_future());

    terminate.recv().await;
    drop(stop);
    let ended = async {
        let served = serving.await;
        background_tasks.wait().await;
        served
    };
    match timeout(GRACE, ended).await {
        Ok(served) => Ok(served??),
        Err(_) => Ok(()),
    }
}

/// A store, and the routes that only it can serve.
type Opened = Result<(Arc<dyn StoreAdmin>, Router<Arc<Server>>), Box<dyn Error>>;

#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite")),
    expect(clippy::unused_async, reason = "other stores are connected to")
)]
async fn open(flags: &Flags, told: &impl Fn(IdempotencyLayer) -> IdempotencyLayer) -> Opened {
    match flags.store.split(':').next() {
        Some("memory") => {
            let store = MemoryStore::builder().capacity(flags.capacity).build();
            Ok((Arc::new(store.namespace(&flags.namespace)), Router::new()))
        }
        #[cfg(feature = "redis")]
        // As a scheme with `-cluster` or `-sentinel` behind it, with the feature of that name.
        Some(scheme) if scheme.starts_with("redis") => {
            let store = RedisStore::builder().namespace(&flags.namespace).connect(&flags.store).await?;
            Ok((Arc::new(store), Router::new()))
        }
        #[cfg(feature = "postgres")]
        Some("postgres" | "postgresql") => table(PostgresStore::connect(&flags.store).await?, flags, told).await,
        #[cfg(feature = "mysql")]
        Some("mysql" | "mariadb") => table(MySqlStore::connect(&flags.store).await?, flags, told).await,
        #[cfg(feature = "sqlite")]
        Some("sqlite") => table(SqliteStore::connect(&flags.store).await?, flags, told).await,
        scheme => Err(format!("--store: {} is not served", scheme.unwrap_or_default()).into()),
    }
}

/// Sees to it that the table is there.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
async fn table<D: Transfer>(
    store: SqlStore<D>,
    flags: &Flags,
    told: impl Fn(IdempotencyLayer) -> IdempotencyLayer,
) -> Opened {
    store.migrate().await?;
    let store = store.namespace(&flags.namespace);
    let transfer = D::routes(&store, told(IdempotencyLayer::transactional(store.clone()))).await?;
    Ok((Arc::new(store), transfer))
}

fn routes(base: &IdempotencyLayer, submit: TokenLayer, other: TokenLayer) -> Router<Arc<Server>> {
    let default = || base.clone();
    // One layer value for both routers that it is nested in.
    let run = Router::new().route("/run", post(handle).layer(default()));

    Router::new()
        .route("/replay", post(handle).patch(handle).get(handle).put(handle).layer(default()))
        .route("/optional", post(handle).layer(default().key_optional()))
        .route("/strict", post(handle).layer(default().key(key::header("Idempotency-Key").strict())))
        .route("/reject", post(handle).layer(default().on_duplicate(OnDuplicate::Reject)))
        .route("/wait", post(handle).layer(default().while_running(WhileRunning::Wait(seconds(5)))))
        .route("/everything", post(handle).layer(default().keep(Keep::EVERYTHING).after_crash(AfterCrash::Never)))
        .route("/final", post(handle).layer(default().keep(Keep::FINAL)))
        .route("/scoped", post(handle).layer(default().scope(scope::header("X-User"))))
        .route("/json", post(handle).layer(default().fingerprint(fingerprint::json())))
        .route("/fields", post(handle).layer(default().fingerprint(fingerprint::json_only(["/amount", "/order/id"]))))
        .route("/unchecked", post(handle).layer(default().fingerprint(fingerprint::off())))
        .route("/small", post(handle).layer(default().request_limit(1024).response_limit(1024)))
        .route("/resubmit", post(handle).layer(no_resubmit(default())))
        .nest("/nested/pay", run.clone())
        .nest("/nested/refund", run)
        .route("/attached", post(handle).layer(default().cancel_on_disconnect()))
        .route("/fail-open", post(handle).layer(default().fail_open()))
        .route("/put", put(handle).delete(handle).layer(default().methods([Method::PUT, Method::DELETE])))
        .route("/fast", post(handle).layer(default().store_timeout(Duration::from_millis(500))))
        .nest("/hook", hooks(base))
        .route("/order-callback", post(handle).layer(acknowledged(default())))
        .route("/legacy", get(handle).layer(default().key(key::query("request_id")).methods([Method::GET])))
        .route("/orders/{id}/pay", post(handle).layer(default().key(key::path("id"))))
        .route("/token", submit.clone().endpoint())
        .route("/token/other", other.endpoint())
        .route("/submit", post(handle).layer(submit.clone()))
        .route("/submit-replay", post(handle).layer(submit.on_duplicate(OnDuplicate::Replay)))
        .route("/executions", get(executions))
        .route("/abandoned", get(abandoned))
}

/// The same content of the same user within two seconds is refused.
fn no_resubmit(base: IdempotencyLayer) -> IdempotencyLayer {
    base.key(key::content())
        .scope(scope::header("X-User").optional())
        .on_duplicate(OnDuplicate::Reject)
        .retention(seconds(2))
}

/// A duplicate receives the sender's word of success; one of a running request, the word for "send it again".
fn acknowledged(base: IdempotencyLayer) -> IdempotencyLayer {
    let text = |status, body: &'static str| {
        let mut response = Response::new(Bytes::from_static(body.as_bytes()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Reply::fixed(response)
    };
    base.key(key::json("/out_trade_no"))
        .fingerprint(fingerprint::off())
        .on_duplicate(OnDuplicate::Respond(text(StatusCode::OK, "success")))
        .while_running(WhileRunning::Respond(text(StatusCode::SERVICE_UNAVAILABLE, "in progress")))
}

fn hooks(base: &IdempotencyLayer) -> Router<Arc<Server>> {
    let hook = |preset| post(handle).layer(base.clone().preset(preset));
    Router::new()
        .route("/alipay", hook(preset::alipay()))
        .route("/wechat-v2", hook(preset::wechat_pay_v2()))
        .route("/wechat-v3", hook(preset::wechat_pay_v3()))
        .route("/stripe", hook(preset::stripe_webhook()))
        .route("/github", hook(preset::github_webhook()))
        .route("/standard", hook(preset::standard_webhooks()))
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
