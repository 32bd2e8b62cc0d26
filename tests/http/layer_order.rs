//! Each line of the table in `docs/layers.md`, with the layers of `tower-http`. Those about layers that watch requests or
//! turn them away are in `layer_order_of_checks.rs`.

use std::{
    io::{Read, Write},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{
        HeaderValue, Method, StatusCode,
        header::{ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_ENCODING, ORIGIN, VARY},
    },
    middleware::{self, Next},
    response::Response,
    routing::post,
};
use http_body_util::BodyExt;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::{
    ServiceBuilderExt,
    catch_panic::CatchPanicLayer,
    compression::{CompressionLayer, Predicate, predicate::SizeAbove},
    cors::CorsLayer,
    decompression::RequestDecompressionLayer,
    limit::RequestBodyLimitLayer,
    request_id::MakeRequestUuid,
    set_header::SetResponseHeaderLayer,
    timeout::TimeoutLayer,
    trace::TraceLayer,
};
use tower_idempotency::{IdempotencyLayer, MemoryStore, cors, scope};

use crate::common::{Counter, Seen, post as send, see};

pub(crate) fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

/// A handler that says how often it ran.
pub(crate) fn counting(runs: &Counter) -> Router {
    let runs = runs.clone();
    Router::new().route("/run", post(move |body: String| async move { format!("{} {body}", runs.next()) }))
}

pub(crate) async fn ask(app: &Router, request: Request) -> Response {
    app.clone().oneshot(request).await.unwrap()
}

pub(crate) fn with(
    mut request: Request,
    name: impl axum::http::header::IntoHeaderName,
    value: &'static str,
) -> Request {
    request.headers_mut().insert(name, HeaderValue::from_static(value));
    request
}

#[tokio::test]
async fn everything_outside_in_one_service_builder() {
    let runs = Counter::default();
    let stack = ServiceBuilder::new()
        .sensitive_headers([axum::http::header::AUTHORIZATION])
        .set_x_request_id(MakeRequestUuid)
        .propagate_x_request_id()
        .layer(TraceLayer::new_for_http())
        .layer(CatchPanicLayer::new())
        .layer(CorsLayer::permissive())
        .layer(CompressionLayer::new())
        .layer(RequestDecompressionLayer::new())
        .layer(RequestBodyLimitLayer::new(1024))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(10)))
        .layer(layer());
    let app = counting(&runs).layer(stack);
    assert_eq!(see(ask(&app, send("/run", "k", "a")).await).await, Seen::first(200, "1 a"));
    assert_eq!(see(ask(&app, send("/run", "k", "a")).await).await, Seen::replay(200, "1 a"));
}

/// Each alone, next to the layer: what one needs of the layer's bodies, another may not.
#[tokio::test]
async fn each_next_to_the_layer_in_a_service_builder() {
    let runs = Counter::default();
    let timeout = || TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(10));
    let one = ServiceBuilder::new();
    let apps = [
        counting(&runs).layer(one.clone().layer(TraceLayer::new_for_http()).layer(layer())),
        counting(&runs).layer(one.clone().layer(CorsLayer::permissive()).layer(layer())),
        counting(&runs).layer(one.clone().layer(timeout()).layer(layer())),
        counting(&runs).layer(one.clone().layer(CompressionLayer::new()).layer(layer())),
        counting(&runs).layer(one.clone().layer(CatchPanicLayer::new()).layer(layer())),
        counting(&runs).layer(one.clone().layer(RequestDecompressionLayer::new()).layer(layer())),
        counting(&runs).layer(one.clone().layer(RequestBodyLimitLayer::new(1024)).layer(layer())),
        // Inside.
        counting(&runs).layer(one.clone().layer(layer()).layer(timeout())),
        counting(&runs).layer(one.clone().layer(layer()).layer(TraceLayer::new_for_http())),
        counting(&runs).layer(one.clone().layer(layer()).layer(CorsLayer::permissive())),
        counting(&runs).layer(one.clone().layer(layer()).layer(RequestDecompressionLayer::new())),
        counting(&runs).layer(one.layer(layer()).layer(CatchPanicLayer::new())),
    ];
    for (app, run) in apps.iter().zip(1..) {
        let answer = format!("{run} a");
        assert_eq!(see(ask(app, send("/run", "k", "a")).await).await, Seen::first(200, &answer));
        assert_eq!(see(ask(app, send("/run", "k", "a")).await).await, Seen::replay(200, &answer));
    }
}

#[tokio::test]
async fn request_ids_outside_are_those_of_each_request() {
    let ids =
        ServiceBuilder::new().set_x_request_id(MakeRequestUuid).propagate_x_request_id().layer(layer()).into_inner();
    let app = counting(&Counter::default()).layer(ids);
    let first = ask(&app, send("/run", "k", "")).await;
    let again = ask(&app, send("/run", "k", "")).await;
    assert!(again.headers().contains_key("idempotent-replayed"));
    assert_ne!(first.headers()["x-request-id"], again.headers()["x-request-id"]);
}

#[tokio::test]
async fn cors_outside_answers_the_preflight_and_marks_replays_for_each_origin() {
    let cors = CorsLayer::new()
        .allow_origin(tower_http::cors::AllowOrigin::mirror_request())
        .allow_methods([Method::POST])
        .allow_headers(cors::ALLOW_HEADERS)
        .expose_headers(cors::EXPOSE_HEADERS);
    let runs = Counter::default();
    let app = counting(&runs).layer(layer()).layer(cors);
    let preflight = Request::options("/run")
        .header(ORIGIN, "https://a.example")
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "idempotency-key")
        .body(Body::empty())
        .unwrap();
    let preflight = ask(&app, preflight).await;
    assert_eq!(preflight.headers()["access-control-allow-headers"], "idempotency-key,x-submit-token");
    let first = ask(&app, with(send("/run", "k", ""), ORIGIN, "https://a.example")).await;
    assert_eq!(first.headers()["access-control-expose-headers"], "idempotent-replayed,retry-after,x-submit-token");
    let again = ask(&app, with(send("/run", "k", ""), ORIGIN, "https://b.example")).await;
    assert_eq!(again.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "https://b.example");
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn compression_outside_encodes_for_each_client_and_inside_replays_the_first_ones_coding() {
    let gzip =
        || CompressionLayer::new().compress_when(SizeAbove::new(0).and(|_: StatusCode, _: _, _: &_, _: &_| true));
    let asks_for_gzip = || with(send("/run", "k", "a"), ACCEPT_ENCODING, "gzip");

    let outside = counting(&Counter::default()).layer(layer()).layer(gzip());
    let first = ask(&outside, asks_for_gzip()).await;
    assert_eq!(
        (&first.headers()[CONTENT_ENCODING], &first.headers()[VARY]),
        (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    let plain = ask(&outside, send("/run", "k", "a")).await;
    assert!(!plain.headers().contains_key(CONTENT_ENCODING));
    assert_eq!(see(plain).await, Seen::replay(200, "1 a"));

    let inside = counting(&Counter::default()).layer(gzip()).layer(layer());
    ask(&inside, asks_for_gzip()).await;
    assert_eq!(ask(&inside, send("/run", "k", "a")).await.headers()[CONTENT_ENCODING], "gzip");
}

#[tokio::test]
async fn authentication_outside_guards_replays_and_inside_does_not() {
    #[derive(Clone)]
    struct User(String);

    async fn authenticate(mut request: Request, next: Next) -> Result<Response, StatusCode> {
        let user = request.headers().get("x-session").ok_or(StatusCode::UNAUTHORIZED)?;
        let user = User(user.to_str().unwrap().to_owned());
        request.extensions_mut().insert(user);
        Ok(next.run(request).await)
    }

    let scoped = layer().scope(scope::extension(|user: &User| user.0.clone()));
    let outside = counting(&Counter::default()).layer(scoped).layer(middleware::from_fn(authenticate));
    ask(&outside, with(send("/run", "k", ""), "x-session", "ann")).await;
    assert_eq!(ask(&outside, send("/run", "k", "")).await.status(), StatusCode::UNAUTHORIZED);

    let inside = counting(&Counter::default()).layer(middleware::from_fn(authenticate)).layer(layer().unscoped());
    ask(&inside, with(send("/run", "k", ""), "x-session", "ann")).await;
    assert_eq!(ask(&inside, send("/run", "k", "")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn decompression_of_requests_decides_what_the_fingerprint_is_of() {
    let zipped = |level| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        gzip.write_all(&[b'a'; 2000]).unwrap();
        let bytes = gzip.finish().unwrap();
        Request::post("/run")
            .header("Idempotency-Key", "k")
            .header(CONTENT_ENCODING, "gzip")
            .body(Body::from(bytes))
            .unwrap()
    };
    let outside = counting(&Counter::default()).layer(layer()).layer(RequestDecompressionLayer::new());
    assert_eq!(ask(&outside, zipped(1)).await.status(), StatusCode::OK);
    assert!(ask(&outside, zipped(9)).await.headers().contains_key("idempotent-replayed"));

    let inside = counting(&Counter::default()).layer(RequestDecompressionLayer::new()).layer(layer());
    assert_eq!(ask(&inside, zipped(1)).await.status(), StatusCode::OK);
    assert_eq!(see(ask(&inside, zipped(9)).await).await.problem(), "key-reused");
}

#[tokio::test]
async fn body_limit_outside_is_told_as_too_large() {
    let runs = Counter::default();
    let app = counting(&runs).layer(layer()).layer(RequestBodyLimitLayer::new(10));
    let unknown = Body::from_stream(futures_util::stream::iter([Ok::<_, std::io::Error>("a".repeat(20))]));
    let request = Request::post("/run").header("Idempotency-Key", "k").body(unknown).unwrap();
    assert_eq!(see(ask(&app, request).await).await.problem(), "body-too-large");
    assert_eq!(see(ask(&app, send("/run", "k", "short")).await).await, Seen::first(200, "1 short"));
}

#[tokio::test]
async fn catching_panics_outside_or_inside_the_key_is_released() {
    let panicking = || {
        let runs = Counter::default();
        Router::new().route(
            "/run",
            post(move || async move {
                assert!(runs.next() > 1, "the first run panics");
                "done"
            }),
        )
    };
    for app in [
        panicking().layer(layer()).layer(CatchPanicLayer::new()),
        panicking().layer(CatchPanicLayer::new()).layer(layer()),
    ] {
        assert_eq!(ask(&app, send("/run", "k", "")).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(see(ask(&app, send("/run", "k", "")).await).await, Seen::first(200, "done"));
    }
}

/// A handler whose effect happens at once, and whose answer takes 60 seconds.
fn slow(effects: &Counter) -> Router {
    let effects = effects.clone();
    Router::new().route(
        "/run",
        post(move || async move {
            let effect = effects.next();
            sleep(Duration::from_secs(60)).await;
            format!("effect {effect}")
        }),
    )
}

fn timeout() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(5))
}

#[tokio::test(start_paused = true)]
async fn timeout_outside_the_work_goes_on_and_its_answer_is_replayed() {
    let effects = Counter::default();
    let app = slow(&effects).layer(layer()).layer(timeout());
    assert_eq!(ask(&app, send("/run", "k", "")).await.status(), StatusCode::GATEWAY_TIMEOUT);
    // It still runs.
    assert_eq!(ask(&app, send("/run", "k", "")).await.status(), StatusCode::CONFLICT);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(see(ask(&app, send("/run", "k", "")).await).await, Seen::replay(200, "effect 1"));
    assert_eq!(effects.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn timeout_inside_frees_the_key_of_an_effect_that_happened() {
    let effects = Counter::default();
    let app = slow(&effects).layer(timeout()).layer(layer());
    for expected in 1..=2 {
        assert_eq!(ask(&app, send("/run", "k", "")).await.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(effects.get(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_concurrency_makes_duplicates_wait_unless_the_handler_has_it() {
    // As a layer inside, it is asked for readiness before anybody can see that the request is a duplicate.
    let effects = Counter::default();
    let stack = ServiceBuilder::new().layer(layer()).concurrency_limit(1);
    let app = slow(&effects).layer(stack).with_state(());
    let first = tokio::spawn(app.clone().oneshot(send("/run", "k", "")));
    sleep(Duration::from_secs(1)).await;
    let asked = Instant::now();
    ask(&app, send("/run", "k", "")).await;
    assert_eq!(asked.elapsed(), Duration::from_secs(59), "it waited for the first one's place");
    first.await.unwrap().unwrap();

    let places = Arc::new(Semaphore::new(1));
    let handler = move || {
        let places = places.clone();
        async move {
            let _place = places.acquire_owned().await.unwrap();
            sleep(Duration::from_secs(60)).await;
            "done"
        }
    };
    let app = Router::new().route("/run", post(handler)).layer(layer());
    let first = tokio::spawn(app.clone().oneshot(send("/run", "k", "")));
    sleep(Duration::from_secs(1)).await;
    let asked = Instant::now();
    assert_eq!(see(ask(&app, send("/run", "k", "")).await).await.problem(), "request-in-progress");
    assert_eq!(asked.elapsed(), Duration::ZERO);
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn fields_that_a_layer_outside_adds_are_on_replays_too() {
    let name = axum::http::HeaderName::from_static("x-frame-options");
    let value = HeaderValue::from_static("DENY");
    let app = counting(&Counter::default()).layer(layer()).layer(SetResponseHeaderLayer::overriding(name, value));
    ask(&app, send("/run", "k", "")).await;
    assert_eq!(ask(&app, send("/run", "k", "")).await.headers()["x-frame-options"], "DENY");
}

#[tokio::test]
async fn what_was_compressed_can_be_read() {
    let gzip = CompressionLayer::new().compress_when(SizeAbove::new(0));
    let app = counting(&Counter::default()).layer(layer()).layer(gzip);
    let answer = ask(&app, with(send("/run", "k", "a"), ACCEPT_ENCODING, "gzip")).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*body).read_to_string(&mut text).unwrap();
    assert_eq!(text, "1 a");
}
