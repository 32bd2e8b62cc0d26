//! The settings of a token layer beside its token: the same as those of other layers.

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, Request, Response, StatusCode},
    response::IntoResponse,
    routing::post,
};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;
use tower_idempotency::{
    AfterCrash, MemoryStore, OnDuplicate, Operation, Policy, TokenLayer, Tokens, WhileRunning, fingerprint,
    store::{Filter, StoreAdmin},
    token::TokenIssuer,
};

use crate::{
    common::{Seen, see},
    tokens::fixture::{Kind, Shop, URLENCODED, form, submission, tokens},
};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(30);

fn shop(adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Shop {
    Shop::new(tokens(Arc::new(MemoryStore::new()), Kind::Stored), adjust)
}

fn replaying(layer: TokenLayer) -> TokenLayer {
    layer.on_duplicate(OnDuplicate::Replay)
}

fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

/// A handler that takes as long as the header `X-Takes` says, in seconds.
struct Slow {
    tokens: Tokens,
    app: Router,
}

impl Slow {
    fn new(adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Self {
        let tokens = Tokens::new(MemoryStore::new());
        let handler = |operation: Operation, headers: HeaderMap| async move {
            let seconds = headers.get("x-takes").map_or(0, |value| value.to_str().unwrap().parse().unwrap());
            sleep(Duration::from_secs(seconds)).await;
            (StatusCode::CREATED, [("set-cookie", "a=b"), ("x-trace", "7")], format!("attempt {}", operation.attempt()))
        };
        let layer = adjust(tokens.layer("order"));
        Self { tokens, app: Router::new().route("/submit", post(handler).layer(layer)) }
    }

    async fn token(&self) -> String {
        self.tokens.issue("order", None).await.unwrap().as_str().to_owned()
    }

    async fn submit(&self, token: &str, takes: u64) -> Response<Body> {
        let mut request = submission(token, "tea");
        request.headers_mut().insert("x-takes", takes.into());
        self.app.clone().oneshot(request).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_fields_of_a_replay() {
    let shop = shop(|layer| {
        replaying(layer)
            .replay_header(name("x-again"))
            .completed_header(name("x-completed"))
            .expires_header(name("x-expires"))
    });
    let token = shop.token(None).await;
    let (_, first) = shop.send_for_headers(submission(&token, "tea")).await;
    let (seen, replay) = shop.send_for_headers(submission(&token, "tea")).await;
    assert_eq!(seen, Seen::first(201, "run 1"), "without the usual mark");
    assert!(!first.contains_key("x-again") && replay["x-again"] == "true");
    for field in ["x-completed", "x-expires"] {
        assert!(first.contains_key(field) && replay.contains_key(field), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_without_a_mark() {
    let shop = shop(|layer| replaying(layer).without_replay_header());
    let token = shop.token(None).await;
    for _ in 0..2 {
        assert_eq!(shop.submit(&token, None, "tea").await, Seen::first(201, "run 1"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_fields_that_are_kept() {
    let slow = Slow::new(|layer| replaying(layer).include_header(name("set-cookie")).exclude_header(name("x-trace")));
    let token = slow.token().await;
    assert!(slow.submit(&token, 0).await.headers().contains_key("x-trace"));
    let replay = slow.submit(&token, 0).await;
    assert!(replay.headers()["set-cookie"] == "a=b" && !replay.headers().contains_key("x-trace"));
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_refusal() {
    let shop = shop(|layer| {
        let instance = |head: &axum::http::request::Parts| Some(format!("urn:path:{}", head.uri.path()));
        layer.sdk_hints().problem_type_base("https://shop.example/problems").problem_link().problem_instance(instance)
    });
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "").await.status, 201);
    let (seen, headers) = shop.send_for_headers(submission(&token, "")).await;
    assert_eq!(seen.problem(), "token-used");
    assert!(seen.body.contains("urn:path:/submit"), "{}", seen.body);
    assert_eq!(headers["stripe-should-retry"], "false");
    assert_eq!(headers["link"], "<https://shop.example/problems#token-used>; rel=\"describedby\"");
}

#[tokio::test(start_paused = true)]
async fn a_token_in_use() {
    let slow = Arc::new(Slow::new(|layer| layer.retry_after(7 * SECOND)));
    let token = slow.token().await;
    let first = tokio::spawn({
        let (slow, token) = (slow.clone(), token.clone());
        async move { slow.submit(&token, 10).await }
    });
    sleep(SECOND).await;
    let refused = slow.submit(&token, 0).await;
    assert_eq!(refused.headers()["retry-after"], "7");
    assert_eq!(see(refused).await.problem(), "request-in-progress");
    assert_eq!(first.await.unwrap().status(), 201);
}

#[tokio::test(start_paused = true)]
async fn duplicates_that_wait_hold_no_more_than_was_said() {
    for (limit, expected) in [(1024, 201), (1, 409)] {
        let slow =
            Slow::new(|layer| replaying(layer).while_running(WhileRunning::Wait(LEASE)).waiting_body_limit(limit));
        let token = slow.token().await;
        let (first, second) = tokio::join!(slow.submit(&token, 10), slow.submit(&token, 10));
        assert_eq!((first.status().as_u16(), second.status().as_u16()), (201, expected), "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_with_its_client() {
    for (after_crash, expected) in
        [(AfterCrash::RunAgain, Ok("attempt 2")), (AfterCrash::Never, Err("outcome-unknown"))]
    {
        let slow = Slow::new(|layer| layer.cancel_on_disconnect().lease(LEASE).after_crash(after_crash));
        let token = slow.token().await;
        assert!(timeout(SECOND, slow.submit(&token, 10)).await.is_err(), "the client leaves");
        sleep(LEASE).await;
        let seen = see(slow.submit(&token, 0).await).await;
        match expected {
            Ok(body) => assert_eq!(seen, Seen::first(201, body)),
            Err(problem) => assert_eq!(seen.problem(), problem),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_and_answers_are_bounded() {
    let shop = shop(|layer| replaying(layer).response_limit(3).request_limit(4).body_timeout(SECOND));
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "coffee").await.problem(), "body-too-large");
    let stalls = submission(&token, "").map(|_| Body::from_stream(stream::pending::<Result<Vec<u8>, io::Error>>()));
    assert_eq!(shop.send(stalls).await.problem(), "body-timeout");
    assert_eq!(shop.submit(&token, None, "tea").await, Seen::first(201, "run 1"));
    assert_eq!(shop.submit(&token, None, "tea").await.problem(), "response-not-retained");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_goes_on_is_passed_on() {
    let tokens = Tokens::new(MemoryStore::new());
    let endless = || async {
        let line = stream::iter([Ok::<_, io::Error>("line\n")]);
        Body::from_stream(line.chain(stream::pending())).into_response()
    };
    let layer = tokens.layer("order").stream_after(SECOND);
    let app: Router = Router::new().route("/submit", post(endless).layer(layer));
    let token = tokens.issue("order", None).await.unwrap();
    let answer = timeout(2 * SECOND, app.clone().oneshot(submission(token.as_str(), ""))).await.unwrap().unwrap();
    let line = answer.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(line, "line\n");
    assert_eq!(see(app.oneshot(submission(token.as_str(), "")).await.unwrap()).await.problem(), "token-used");
}

/// Wherever the token is: what is in the body counts, and a refusal spends nothing.
#[tokio::test(start_paused = true)]
async fn a_step_before_the_claim() {
    let shop = shop(|layer| {
        layer.verify(|_, body| async move {
            let refused = || Response::builder().status(StatusCode::IM_A_TEAPOT).body("no".into()).unwrap();
            if body.ends_with(b"42") { Ok(()) } else { Err(refused()) }
        })
    });
    for by_header in [true, false] {
        let token = shop.token(None).await;
        let send = async |answer: u8| {
            let body = format!("_token={token}&answer={answer}");
            let mut request = form(URLENCODED, body);
            if by_header {
                request.headers_mut().insert("x-submit-token", token.parse().unwrap());
            }
            shop.send(request).await
        };
        assert_eq!(send(41).await, Seen::first(418, "no"));
        assert_eq!(send(42).await.status, 201);
        assert_eq!(send(42).await.problem(), "token-used");
    }
}

#[tokio::test(start_paused = true)]
async fn the_request_beside_the_record() {
    let store = Arc::new(MemoryStore::new());
    let shop = Shop::new(tokens(store.clone(), Kind::Stored), TokenLayer::keep_request);
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "tea").await.status, 201);
    assert_eq!(store.list(Filter::All, None, 9).await.unwrap().entries[0].record.note, "tea");
}

#[test]
#[should_panic(expected = "`multipart_prefix(..)` does not read the body")]
fn what_needs_the_body_and_what_does_not_read_it() {
    drop(shop(|layer| layer.multipart_prefix(1000).keep_request()));
}

#[tokio::test(start_paused = true)]
async fn a_whole_policy() {
    let shop = shop(|layer| layer.policy(Policy::replay().keep(tower_idempotency::Keep::EVERYTHING)));
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "bad").await, Seen::first(422, "run 1"));
    assert_eq!(shop.submit(&token, None, "bad").await, Seen::replay(422, "run 1"));
    assert_eq!(shop.submit(&token, None, "other").await.problem(), "key-reused");
}

/// In whatever order the settings are made.
#[tokio::test(start_paused = true)]
async fn what_counts_as_the_same() {
    for adjust in
        [(|layer| replaying(layer.fingerprint(fingerprint::off()))) as fn(TokenLayer) -> TokenLayer, |layer| {
            replaying(layer).fingerprint(fingerprint::off())
        }]
    {
        let shop = shop(adjust);
        let token = shop.token(None).await;
        assert_eq!(shop.submit(&token, None, "tea").await, Seen::first(201, "run 1"));
        assert_eq!(shop.submit(&token, None, "coffee").await, Seen::replay(201, "run 1"));
    }
}

#[tokio::test]
async fn a_layer_that_is_switched_off_asks_for_no_token_and_still_issues() {
    let page = |State(()): State<()>, tokens: TokenIssuer| async move {
        (StatusCode::CREATED, tokens.issue().await.unwrap().as_str().to_owned())
    };
    let layer = Tokens::new(MemoryStore::new()).layer("order");
    let ask = async |layer: TokenLayer, token: &str| {
        let app = Router::new().route("/submit", post(page).layer(layer)).with_state(());
        see(app.oneshot(submission(token, "")).await.unwrap()).await
    };
    let mut token = "none".to_owned();
    for _ in 0..2 {
        let seen = ask(layer.clone().disabled(true), &token).await;
        assert_eq!(seen.status, 201);
        token = seen.body;
    }
    // What is verified stays so.
    let refusing = |refuses: bool| {
        let refused = move || Response::builder().status(StatusCode::IM_A_TEAPOT).body("no".into()).unwrap();
        layer.clone().disabled(true).verify(move |_, _| async move { if refuses { Err(refused()) } else { Ok(()) } })
    };
    assert_eq!(ask(refusing(true), "none").await, Seen::first(418, "no"));
    assert_eq!(ask(refusing(false), "none").await.status, 201);
    assert_eq!(ask(layer.clone().disabled(false), "none").await.problem(), "token-invalid");
    assert_eq!(ask(layer, &token).await.status, 201);
}

#[tokio::test]
async fn routes_and_requests_that_are_left_out() {
    let layer = Tokens::new(MemoryStore::new())
        .layer("order")
        .skip_routes(["/callback"])
        .skip_if(|parts| parts.headers.contains_key("x-internal"));
    let ordered = || post(|| async { StatusCode::CREATED });
    let app = Router::new().route("/callback", ordered()).route("/submit", ordered()).layer(layer);
    let ask = async |path: &str, internal: bool| {
        let request = Request::post(path);
        let request = if internal { request.header("x-internal", "1") } else { request };
        app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    };
    assert_eq!((ask("/callback", false).await, ask("/submit", true).await), (201, 201));
    assert_eq!(ask("/submit", false).await, 400);
}
