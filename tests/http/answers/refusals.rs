//! How refusals look, and who says so.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, Response, header},
};
use tokio::time::advance;
use tower::service_fn;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Policy, Refusal, Tokens,
    key::{self, KeyError},
    scope,
    service::RequestBody,
};
#[cfg(feature = "tracing")]
use tracing::Level;

#[cfg(feature = "tracing")]
use crate::tracing_events::Heard;
use crate::{
    answers::fixture::{Fixture, Whole, as_it_is},
    common::{Seen, post, see},
};

/// A mismatch, behind a first request.
async fn refused(adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Whole {
    let fixture = Fixture::new(adjust, |_| "body");
    fixture.ask().await;
    Whole::of(fixture.send(post("/run", "k", "other")).await).await
}

#[tokio::test(start_paused = true)]
async fn a_problem_document() {
    let refused = refused(as_it_is).await;
    let problem: serde_json::Value = serde_json::from_slice(&refused.data).unwrap();
    assert_eq!(refused.status, 422);
    assert_eq!(problem["status"], 422);
    for member in ["type", "title", "detail"] {
        assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member} of {problem}");
    }
    let expected = [("content-type", "application/problem+json"), ("cache-control", "no-store")];
    assert_eq!(refused.fields, expected.map(|(name, value)| (name.to_owned(), value.into())));
}

#[tokio::test(start_paused = true)]
async fn the_base_of_its_type() {
    let refused = refused(|layer| layer.problem_type_base("https://example.com/errors?a=\"b\"")).await;
    let problem: serde_json::Value = serde_json::from_slice(&refused.data).unwrap();
    assert_eq!(problem["type"], "https://example.com/errors?a=\"b\"#key-reused");
}

#[tokio::test(start_paused = true)]
async fn rendered_by_the_application() {
    let refused = refused(|layer| {
        layer.render(|refused| {
            let refusal = refused.refusal();
            let mut response = Response::new(Bytes::from(format!("<p>{}", refusal.name())));
            *response.status_mut() = refusal.status();
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
            response
        })
    })
    .await;
    assert_eq!((refused.status.as_u16(), &refused.data[..]), (422, &b"<p>key-reused"[..]));
    assert_eq!(refused.fields, [("content-type".to_owned(), b"text/html".to_vec())]);
}

#[tokio::test(start_paused = true)]
async fn a_problem_of_the_handlers_own_is_an_answer() {
    let fixture = Fixture::new(as_it_is, |_| ([("content-type", "application/problem+json")], "{\"type\":\"own\"}"));
    assert_eq!(see(fixture.ask().await).await, Seen::first(200, "{\"type\":\"own\"}"));
    assert_eq!(see(fixture.ask().await).await, Seen::replay(200, "{\"type\":\"own\"}"));
}

/// Returns the detail that a request without a key, or with a bad one, receives.
async fn detail(adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer, request: Request) -> String {
    let refused = Whole::of(Fixture::new(adjust, |_| "body").send(request).await).await;
    let problem: serde_json::Value = serde_json::from_slice(&refused.data).unwrap();
    problem["detail"].as_str().unwrap().to_owned()
}

fn bare(uri: &str) -> Request {
    Request::post(uri).body(Body::from("{}")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn where_a_key_belongs() {
    type Adjust = fn(IdempotencyLayer) -> IdempotencyLayer;
    let form = || {
        let request = Request::post("/run").header("Content-Type", "application/x-www-form-urlencoded");
        request.body(Body::from("a=1")).unwrap()
    };
    let xml = || Request::post("/run").header("Content-Type", "text/xml").body(Body::from("<a/>")).unwrap();
    let cases: [(Adjust, Request, &str); 11] = [
        (as_it_is, bare("/run"), " It belongs in the header `Idempotency-Key`."),
        (|layer| layer.key(key::query("id")), bare("/run"), " It belongs in the query parameter `id`."),
        (|layer| layer.key(key::query("id")), bare("/run?id="), " It belongs in the query parameter `id`."),
        (|layer| layer.key(key::json("/order/id")), bare("/run"), " It belongs in the JSON body at \"/order/id\"."),
        (
            |layer| layer.key(key::first([key::header("X-Id"), key::query("id")])),
            bare("/run"),
            " It belongs in the header `X-Id` or the query parameter `id`.",
        ),
        (|layer| layer.key(key::form("id")), form(), " It belongs in the form field `id`."),
        (|layer| layer.key(key::xml("id")), xml(), " It belongs in the XML element `id`."),
        (|layer| layer.key(key::path("id")), bare("/run"), " It belongs in the path parameter `id`."),
        (
            |layer| layer.key(key::all([key::header("X-Id"), key::json("/id")])),
            bare("/run"),
            " It belongs in the header `X-Id` and the JSON body at \"/id\".",
        ),
        (
            |layer| layer.key(key::first([key::header("X-Id"), key::content()])).unscoped(),
            {
                let mut twice = bare("/run");
                twice.headers_mut().append("x-id", HeaderValue::from_static("a"));
                twice.headers_mut().append("x-id", HeaderValue::from_static("b"));
                twice
            },
            "the key is there more than once.",
        ),
        (
            |layer| layer.key(key::from_fn(|_| Err(KeyError::malformed("the path ends early")))),
            bare("/run"),
            "the path ends early.",
        ),
    ];
    for (adjust, request, expected) in cases {
        let detail = detail(adjust, request).await;
        assert!(detail.ends_with(expected), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn advice_for_the_service_is_not_for_clients() {
    let scoped =
        detail(|layer| layer.scope(scope::extension(|user: &String| user.clone())), post("/run", "k", "")).await;
    assert!(!scoped.contains('`') && !scoped.contains("layer"), "{scoped}");
    assert!(Refusal::ScopeMissing.advice().unwrap().contains("`scope::extension`"));
}

#[tokio::test(start_paused = true)]
async fn another_caller_is_told_to_keep_the_key() {
    let fixture = Fixture::new(as_it_is, |_| "body");
    let ask = async |caller: &'static str| {
        let mut request = post("/run", "k", "");
        request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static(caller));
        see(fixture.send(request).await).await
    };
    ask("Bearer ann").await;
    let refused = ask("Bearer bob").await;
    assert_eq!(refused.problem(), "other-caller");
    for words in ["the credentials of the first try", "keep the key"] {
        assert!(refused.body.contains(words), "{words}: {}", refused.body);
    }
}

#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn advice_for_the_service_goes_to_the_log() {
    let fixture = Fixture::new(|layer| layer.scope(scope::header("X-Tenant")), |_| "body");
    let (heard, _listening) = Heard::listen_to(Level::INFO);
    fixture.ask().await;
    let missing = heard.take();
    assert!(missing.len() == 1 && missing[0].contains("`scope::extension`"), "{missing:#?}");

    let fixture = Fixture::new(as_it_is, |_| "body");
    for caller in ["Bearer ann", "Bearer bob"] {
        let mut request = post("/run", "k", "");
        request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static(caller));
        fixture.send(request).await;
    }
    let other = heard.take();
    let refused = other.iter().find(|line| line.contains("other-caller") && line.starts_with("INFO"));
    assert!(refused.is_some_and(|line| line.contains("`.scope(..)`") && !line.contains("Bearer")), "{other:#?}");
}

#[tokio::test(start_paused = true)]
async fn where_a_scope_belongs() {
    type Adjust = fn(IdempotencyLayer) -> IdempotencyLayer;
    let from_key: Adjust = |layer| layer.scope(scope::from_key(key::header("X-Tenant")));
    let by_header: Adjust = |layer| layer.scope(scope::header("X-Tenant"));
    let missing = "The request lacks what says whose idempotency key it is.";
    for (adjust, tenants, name, expected) in [
        (from_key, &[][..], "scope-missing", &*format!("{missing} It belongs in the header `X-Tenant`.")),
        (
            from_key,
            &["a", "b"],
            "scope-invalid",
            "the scope is there more than once. It belongs in the header `X-Tenant`.",
        ),
        // What a gateway sets is not for clients to know.
        (by_header, &[], "scope-missing", missing),
    ] {
        let mut request = post("/run", "k", "");
        for tenant in tenants {
            request.headers_mut().append("x-tenant", HeaderValue::from_static(tenant));
        }
        let refused = see(Fixture::new(adjust, |_| "body").send(request).await).await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (400, name));
        let problem: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
        assert_eq!(problem["detail"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_token_belongs() {
    let tokens = Tokens::new(MemoryStore::new()).layer("order").header("X-Order-Token").field("order_token");
    let service = tower::Layer::layer(
        &tokens,
        service_fn(async |_: http::Request<RequestBody<Body>>| {
            Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
        }),
    );
    let refused = tower::ServiceExt::oneshot(service, bare("/run")).await.unwrap();
    let refused = see(refused).await;
    assert_eq!(refused.problem(), "token-missing");
    assert!(
        refused.body.contains("It belongs in the header `X-Order-Token` or the form field `order_token`."),
        "{}",
        refused.body
    );
}

/// `retryable`, `Retry-After`, and the hints.
type Told = (bool, Option<String>, [Option<String>; 2]);

fn told(refused: &Whole) -> Told {
    let problem: serde_json::Value = serde_json::from_slice(&refused.data).unwrap();
    let field = |name: &str| {
        let found = refused.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| String::from_utf8(value.clone()).unwrap())
    };
    let hints = ["stripe-should-retry", "x-should-retry"].map(field);
    (problem["retryable"].as_bool().unwrap(), field("retry-after"), hints)
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_whether_to_repeat_it() {
    for hints in [false, true] {
        let hint = |retryable: bool| [(); 2].map(|()| hints.then(|| retryable.to_string()));
        let adjust = |layer: IdempotencyLayer| {
            let layer = layer.policy(Policy::reject());
            if hints { layer.sdk_hints() } else { layer }
        };
        let fixture = Fixture::reading(adjust, |_, _| tokio::time::sleep(Duration::from_secs(1)));
        let first = tokio::spawn(tower::ServiceExt::oneshot(fixture.app.clone(), post("/run", "k", "")));
        tokio::task::yield_now().await;
        let running = Whole::of(fixture.ask().await).await;
        assert_eq!(told(&running), (true, Some("1".into()), hint(true)), "this 409 passes");
        first.await.unwrap().unwrap();
        let ended = Whole::of(fixture.ask().await).await;
        assert_eq!((running.status, ended.status), (409.try_into().unwrap(), 409.try_into().unwrap()));
        assert_eq!(told(&ended), (false, None, hint(false)), "this one does not");
    }
}

#[tokio::test(start_paused = true)]
async fn when_a_window_ends() {
    let window = Policy::reject().retention(Duration::from_secs(30));
    let fixture = Fixture::new(|layer| layer.policy(window).key(key::content()).unscoped(), |_| "body");
    fixture.ask().await;
    let (retryable, retry_after, _) = told(&Whole::of(fixture.ask().await).await);
    let left: u64 = retry_after.unwrap().parse().unwrap();
    assert!((25..=30).contains(&left), "{left}");
    assert!(!retryable, "a client that repeats by itself would run a second time");
    advance(Duration::from_secs(30)).await;
    assert_eq!(see(fixture.ask().await).await, Seen::first(200, "body"));
}

#[tokio::test(start_paused = true)]
async fn a_renderer_sees_the_request_and_can_fall_back() {
    let fixture = Fixture::new(
        |layer| {
            layer.render(|refused| {
                let mut document = refused.document();
                let headers = document.headers_mut();
                let key = refused.key().map_or_else(|| "none".to_owned(), |key| key.key().to_owned());
                headers.insert("x-key", key.parse().unwrap());
                headers.insert("x-path", refused.head().uri.path().parse().unwrap());
                headers.insert("x-name", refused.refusal().name().parse().unwrap());
                document
            })
        },
        |_| "body",
    );
    fixture.ask().await;
    for (request, key, name) in [(post("/run", "k", "other"), "k", "key-reused"), (bare("/run"), "none", "key-missing")]
    {
        let refused = fixture.send(request).await;
        let headers = refused.headers().clone();
        assert_eq!([&headers["x-key"], &headers["x-path"], &headers["x-name"]], [key, "/run", name]);
        assert_eq!(see(refused).await.problem(), name);
    }
}

#[tokio::test]
async fn a_renderer_sees_the_head_that_the_handler_has_had() {
    let adjust = |layer: IdempotencyLayer| {
        layer.policy(Policy::at_most_once()).render(|refused| {
            let head = refused.head();
            Response::new(Bytes::from(format!(
                "{} {} {}",
                head.method,
                head.uri,
                head.headers["idempotency-key"].to_str().unwrap()
            )))
        })
    };
    let fixture = Fixture::new(adjust, |_| -> Response<Body> { panic!("told to") });
    tokio::spawn(tower::ServiceExt::oneshot(fixture.app.clone(), post("/run", "k", ""))).await.unwrap_err();
    assert_eq!(see(fixture.ask().await).await, Seen::replay(200, "POST /run k"));
}

#[tokio::test(start_paused = true)]
async fn an_instance_and_a_link_by_option() {
    let refused = refused(|layer| {
        layer
            .problem_type_base("https://example.com/errors")
            .problem_link()
            .problem_instance(|head| Some(format!("{}#7", head.uri.path())))
    })
    .await;
    let problem: serde_json::Value = serde_json::from_slice(&refused.data).unwrap();
    assert_eq!(problem["instance"], "/run#7");
    let link = refused.fields.iter().find(|(name, _)| name == "link").map(|(_, value)| &value[..]);
    assert_eq!(link, Some(&b"<https://example.com/errors#key-reused>; rel=\"describedby\""[..]));
}
