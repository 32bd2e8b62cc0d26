//! The lines of the table in `docs/layers.md` about layers that watch requests or turn them away; and that every line of it
//! has a test.

use std::{
    collections::HashSet,
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, StatusCode, header::CONTENT_ENCODING, request::Parts},
    middleware::{self, Next},
    response::Response,
    routing::post,
};
use tower_http::{decompression::RequestDecompressionLayer, trace::TraceLayer};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore,
    store::{RecordKey, StoreAdmin},
};

use crate::{
    common::{Counter, Seen, post as send, see},
    layer_order::{ask, counting, layer, with},
};

async fn status(app: &Router, request: Request) -> u16 {
    ask(app, request).await.status().as_u16()
}

#[tokio::test]
async fn tracing_outside_sees_replays_and_refusals_and_inside_only_what_runs() {
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let traced = || {
        let statuses = statuses.clone();
        TraceLayer::new_for_http().on_response(move |response: &Response, _: Duration, _: &tracing::Span| {
            statuses.lock().unwrap().push(response.status().as_u16());
        })
    };
    for (app, seen) in [
        (counting(&Counter::default()).layer(layer()).layer(traced()), &[200, 200, 422][..]),
        (counting(&Counter::default()).layer(traced()).layer(layer()), &[200]),
    ] {
        for (body, expected) in [("a", 200), ("a", 200), ("b", 422)] {
            assert_eq!(status(&app, send("/run", "k", body)).await, expected);
        }
        assert_eq!(std::mem::take(&mut *statuses.lock().unwrap()), seen);
    }
}

#[tokio::test]
async fn a_rate_limit_outside_counts_duplicates_and_inside_undoes_the_attempt() {
    let limited = |requests: usize| {
        let served = Counter::default();
        middleware::from_fn(move |request: Request, next: Next| {
            let is_over = served.next() > requests;
            async move { if is_over { Err(StatusCode::TOO_MANY_REQUESTS) } else { Ok(next.run(request).await) } }
        })
    };
    let outside = counting(&Counter::default()).layer(layer()).layer(limited(1));
    assert_eq!(status(&outside, send("/run", "k", "")).await, 200);
    assert_eq!(status(&outside, send("/run", "k", "")).await, 429);

    let store = MemoryStore::new();
    let inside =
        |limit| counting(&Counter::default()).layer(limited(limit)).layer(IdempotencyLayer::new(store.clone()));
    let app = inside(1);
    assert_eq!(status(&app, send("/run", "k", "")).await, 200);
    // Replays do not reach it, however many there are.
    for _ in 0..9 {
        assert_eq!(status(&app, send("/run", "k", "")).await, 200);
    }
    assert_eq!(status(&app, send("/run", "other", "")).await, 429);
    let other = RecordKey::new("/run", None, "other").unwrap();
    assert!(store.inspect(&other).await.unwrap().is_none(), "as if it had not been sent");
    // Anybody may use that key for anything.
    assert_eq!(status(&inside(1), send("/run", "other", "corrected")).await, 200);
}

/// Also a request that is the same byte for byte has been seen before.
#[tokio::test]
async fn a_check_that_remembers_nonces_refuses_honest_retries() {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let once = middleware::from_fn(move |request: Request, next: Next| {
        let is_new = seen.lock().unwrap().insert(request.headers()["x-nonce"].clone());
        async move { if is_new { Ok(next.run(request).await) } else { Err(StatusCode::UNAUTHORIZED) } }
    });
    let signed = || with(send("/run", "k", "a"), "x-nonce", "4711");
    let checked = counting(&Counter::default()).layer(layer()).layer(once);
    assert_eq!(status(&checked, signed()).await, 200);
    assert_eq!(status(&checked, signed()).await, 401);
    let unchecked = counting(&Counter::default()).layer(layer());
    assert_eq!(see(ask(&unchecked, signed()).await).await, Seen::first(200, "1 a"));
    assert_eq!(see(ask(&unchecked, signed()).await).await, Seen::replay(200, "1 a"));
}

#[tokio::test]
async fn verify_sees_the_bytes_that_were_sent_and_guards_replays() {
    async fn verify(head: Parts, body: Bytes) -> Result<(), Response<Bytes>> {
        let is_raw = body.starts_with(&[0x1f, 0x8b]);
        if is_raw && head.headers.contains_key("x-signature") {
            return Ok(());
        }
        let mut refused = Response::new(Bytes::new());
        *refused.status_mut() = StatusCode::UNAUTHORIZED;
        Err(refused)
    }

    let signed = |name: &'static str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"a").unwrap();
        let request = send("/run", "k", "").map(|_| Body::from(gzip.finish().unwrap()));
        with(with(request, CONTENT_ENCODING, "gzip"), name, "7")
    };
    let runs = Counter::default();
    let app = counting(&runs).layer(RequestDecompressionLayer::new()).layer(layer().verify(verify));
    assert_eq!((status(&app, signed("x-other")).await, runs.get()), (401, 0));
    assert_eq!(see(ask(&app, signed("x-signature")).await).await, Seen::first(200, "1 a"));
    assert_eq!(status(&app, signed("x-other")).await, 401);
    assert_eq!(see(ask(&app, signed("x-signature")).await).await, Seen::replay(200, "1 a"));
}

/// The handler is not asked about a replay, so what it checks belongs outside if a replay must not pass it.
#[tokio::test]
async fn authorisation_in_the_handler_guards_the_effect_and_outside_replays_too() {
    fn may_pay(headers: &HeaderMap) -> Result<(), StatusCode> {
        headers.contains_key("x-may-pay").then_some(()).ok_or(StatusCode::FORBIDDEN)
    }

    let effects = Counter::default();
    let paid = effects.clone();
    let handler = post(async move |headers: HeaderMap| {
        may_pay(&headers)?;
        Ok::<_, StatusCode>(paid.next().to_string())
    });
    let allowed = || with(send("/run", "k", ""), "x-may-pay", "1");
    let app = Router::new().route("/run", handler).layer(layer());
    assert_eq!((status(&app, send("/run", "k", "")).await, effects.get()), (403, 0));
    assert_eq!(see(ask(&app, allowed()).await).await, Seen::first(200, "1"));
    assert_eq!(see(ask(&app, send("/run", "k", "")).await).await, Seen::replay(200, "1"));

    let outside = app.layer(middleware::from_fn(async |request: Request, next: Next| {
        may_pay(request.headers())?;
        Ok::<_, StatusCode>(next.run(request).await)
    }));
    assert_eq!(status(&outside, send("/run", "k", "")).await, 403);
    assert_eq!(see(ask(&outside, allowed()).await).await, Seen::replay(200, "1"));
}

/// The one case in which a timeout may be inside: what it cuts off is rolled back.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn timeout_inside_a_transaction_leaves_no_effect() {
    use tower_http::timeout::TimeoutLayer;
    use tower_idempotency::{SqliteStore, sql::Tx};

    let folder = crate::folder::Folder::quick();
    let store = SqliteStore::open(folder.path().join("shop.db")).await.unwrap();
    store.migrate().await.unwrap();
    sqlx::raw_sql("CREATE TABLE effects (run INTEGER)").execute(store.pool()).await.unwrap();
    let effects =
        async || sqlx::query_scalar::<_, i64>("SELECT count(*) FROM effects").fetch_one(store.pool()).await.unwrap();
    let runs = Counter::default();
    let handler = post(async move |mut tx: Tx<sqlx::Sqlite>| {
        let run = runs.next();
        sqlx::query("INSERT INTO effects VALUES (7)").execute(&mut *tx).await.unwrap();
        if run == 1 {
            std::future::pending::<()>().await;
        }
        run.to_string()
    });
    let timeout = TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(500));
    let transactional = IdempotencyLayer::transactional(store.clone());
    let app = Router::new().route("/run", handler).layer(timeout).layer(transactional);
    assert_eq!((status(&app, send("/run", "k", "")).await, effects().await), (504, 0));
    assert_eq!(see(ask(&app, send("/run", "k", "")).await).await, Seen::first(200, "2"));
    assert_eq!(see(ask(&app, send("/run", "k", "")).await).await, Seen::replay(200, "2"));
    assert_eq!(effects().await, 1);
}

/// Each line of the table, and the tests that show it.
const LINES: [(&str, &[&str]); 15] = [
    (
        "tracing, metrics, request ids",
        &[
            "tracing_outside_sees_replays_and_refusals_and_inside_only_what_runs",
            "request_ids_outside_are_those_of_each_request",
        ],
    ),
    ("CORS", &["cors_outside_answers_the_preflight_and_marks_replays_for_each_origin"]),
    ("compression", &["compression_outside_encodes_for_each_client_and_inside_replays_the_first_ones_coding"]),
    ("authentication", &["authentication_outside_guards_replays_and_inside_does_not"]),
    ("signatures over the body", &["verify_sees_the_bytes_that_were_sent_and_guards_replays"]),
    ("a check that remembers nonces or signatures", &["a_check_that_remembers_nonces_refuses_honest_retries"]),
    ("rate limits, load shedding", &["a_rate_limit_outside_counts_duplicates_and_inside_undoes_the_attempt"]),
    ("decompression of requests", &["decompression_of_requests_decides_what_the_fingerprint_is_of"]),
    ("body limits", &["body_limit_outside_is_told_as_too_large"]),
    ("timeout", &["timeout_outside_the_work_goes_on_and_its_answer_is_replayed"]),
    ("panic catching", &["catching_panics_outside_or_inside_the_key_is_released"]),
    ("**this layer**", &[]),
    (
        "timeout that ends the work",
        &["timeout_inside_frees_the_key_of_an_effect_that_happened", "timeout_inside_a_transaction_leaves_no_effect"],
    ),
    ("concurrency limit for the handler", &["a_limit_of_concurrency_makes_duplicates_wait_unless_the_handler_has_it"]),
    ("authorisation of one operation", &["authorisation_in_the_handler_guards_the_effect_and_outside_replays_too"]),
];

#[test]
fn every_line_of_the_table_has_its_test() {
    let guide = include_str!("../../docs/layers.md");
    let table = guide.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let lines: Vec<_> =
        table.take_while(|line| line.starts_with("| ")).map(|line| line.split(" | ").next().unwrap()).collect();
    let told: Vec<_> = LINES.iter().map(|(line, _)| format!("| {line}")).collect();
    assert_eq!(lines, told);
    let tests = [include_str!("layer_order.rs"), include_str!("layer_order_of_checks.rs")].concat();
    for name in LINES.iter().flat_map(|(_, tests)| *tests) {
        assert!(tests.contains(&format!("async fn {name}()")), "{name}");
    }
}
