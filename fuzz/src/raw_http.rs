//! A server with the layer, and a client that sends it any bytes.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Method, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::{get, post},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    join,
    runtime::Builder,
    time::timeout,
};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, OnDuplicate, Operation, Tokens, fingerprint, key, preset, scope, store::RecordKey,
};

use crate::rules::choices::Choices;

/// Longer than anything that the server waits for.
const HANGS: Duration = Duration::from_secs(3_600);

/// The operations that ran.
type Ran = Arc<Mutex<BTreeSet<Vec<u8>>>>;

/// The server answers and ends, and no operation runs twice, though the bytes come three times: first cut short by a client
/// that leaves, then as they are, and once more.
pub fn any_bytes(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let at_once = choices.one_of(&[usize::MAX, 1, 7, 100]);
    let cut = choices.below(256);
    let sent = choices.rest();
    let server = server();
    // Time passes only if nobody has anything else to do, and so the longest of waits is over at once.
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        talk(server.clone(), &sent[..sent.len() * cut / 256], at_once, true).await;
        let first = talk(server.clone(), sent, at_once, false).await;
        let second = talk(server, sent, usize::MAX, false).await;
        for answer in [first, second] {
            let status = answer.get(9..12).unwrap_or_default();
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{}", answer.escape_ascii());
            assert!(!matches!(status, b"500" | b"503"), "{}", answer.escape_ascii());
        }
    });
}

/// What the server answers on one connection.
async fn talk(server: Router, sent: &[u8], at_once: usize, leaves: bool) -> Vec<u8> {
    let (client, connection) = duplex(16 * 1024);
    let served = http1::Builder::new()
        .half_close(!leaves)
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(connection), TowerToHyperService::new(server));
    let (mut answers, mut requests) = tokio::io::split(client);
    let send = async move {
        for piece in sent.chunks(at_once) {
            // The server may have closed its side.
            if requests.write_all(piece).await.is_err() {
                break;
            }
        }
        let _ = requests.shutdown().await;
    };
    let read = async move {
        let mut answer = Vec::new();
        if !leaves {
            answers.read_to_end(&mut answer).await.expect("the pipe works");
        }
        answer
    };
    // What the server makes of the connection is its own affair.
    let all = async { join!(send, read, async { drop(served.await) }).1 };
    timeout(HANGS, all).await.expect("it hangs")
}

fn server() -> Router {
    let store = MemoryStore::builder().capacity(10_000).build();
    let base = || IdempotencyLayer::new(store.clone());
    let tokens = Tokens::new(store.clone()).layer("order");
    let hook = |preset| post(run).layer(base().preset(preset));
    Router::new()
        .route("/", post(run).patch(run).get(run).layer(base()))
        .route("/optional", post(run).layer(base().key_optional()))
        .route("/strict", post(run).layer(base().key(key::header("Idempotency-Key").strict())))
        .route("/reject", post(run).layer(base().on_duplicate(OnDuplicate::Reject)))
        .route("/scoped", post(run).layer(base().scope(scope::header("X-User"))))
        .route("/json", post(run).layer(base().fingerprint(fingerprint::json())))
        .route("/form", post(run).layer(base().key(key::form("id")).fingerprint(fingerprint::form())))
        .route("/small", post(run).layer(base().request_limit(16).response_limit(16)))
        .route("/content", post(run).layer(base().unscoped().key(key::content())))
        .route("/legacy", get(run).layer(base().key(key::query("id")).methods([Method::GET])))
        .route("/orders/{id}", post(run).layer(base().key(key::path("id"))))
        .route("/token", tokens.clone().endpoint())
        .route("/submit", post(run).layer(tokens))
        .route("/alipay", hook(preset::alipay()))
        .route("/wechat", hook(preset::wechat_pay_v2()))
        .route("/github", hook(preset::github_webhook()))
        .route("/standard", hook(preset::standard_webhooks()))
        .with_state(Ran::default())
}

async fn run(State(ran): State<Ran>, operation: Option<Operation>, body: Bytes) -> impl IntoResponse {
    if let Some(operation) = operation {
        let key: &RecordKey = operation.record_key();
        let is_new = ran.lock().unwrap_or_else(PoisonError::into_inner).insert(key.as_bytes().to_vec());
        assert!(is_new, "{key:?} ran twice");
    }
    ([(CONTENT_TYPE, "text/plain")], body)
}
