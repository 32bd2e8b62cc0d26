//! How services are asked who calls: for each way, what an honest retry and another caller with the same key get, and what
//! the log says of it.

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    middleware::{self, Next},
    response::Response,
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, MemoryStore, credential, scope};

use crate::tracing_events::Heard;

#[derive(Debug, PartialEq, Eq)]
enum Gets {
    /// The first one's answer.
    Replay,
    /// 422, and nothing runs.
    Refused,
    /// A run of its own.
    Run,
}
use Gets::{Refused, Replay, Run};

type Headers = &'static [(&'static str, &'static str)];

struct Way {
    name: &'static str,
    layer: fn(IdempotencyLayer) -> IdempotencyLayer,
    first: Headers,
    retry: (Headers, Gets),
    stranger: (Headers, Gets),
    /// What a warning names, if there is one.
    warned: Option<&'static str>,
}

const fn usual(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer
}

/// Credentials that the layer knows, and that are the same with each try.
const fn steady(name: &'static str, first: Headers, retry: Headers, stranger: Headers) -> Way {
    Way {
        name,
        layer: usual,
        first,
        retry: (retry, Replay),
        stranger: (stranger, Refused),
        warned: Some("`.scope(..)`"),
    }
}

/// Credentials that are drawn or signed anew for each try: an honest caller is taken for another one, and the log says what
/// to do about it.
const fn renewed(name: &'static str, first: Headers, retry: Headers, stranger: Headers) -> Way {
    Way { retry: (retry, Refused), ..steady(name, first, retry, stranger) }
}

/// The same with the scope that the guide shows: what an authentication outside the layer has found out.
fn verified(name: &'static str, first: Headers, retry: Headers, stranger: Headers) -> Way {
    let layer = |layer: IdempotencyLayer| layer.scope(scope::extension(|user: &User| user.0.clone()));
    Way { name, layer, first, retry: (retry, Replay), stranger: (stranger, Run), warned: None }
}

fn told(name: &'static str, layer: fn(IdempotencyLayer) -> IdempotencyLayer, by: [Headers; 3], stranger: Gets) -> Way {
    let warned = (stranger == Refused).then_some("`.scope(..)`");
    Way { name, layer, first: by[0], retry: (by[1], Replay), stranger: (by[2], stranger), warned }
}

const ANN: (&str, &str) = ("authorization", "Bearer ann");

fn ways() -> Vec<Way> {
    let mut ways = vec![
        steady("a bearer token", &[ANN], &[ANN], &[("authorization", "Bearer bob")]),
        renewed(
            "a renewed bearer token",
            &[ANN],
            &[("authorization", "Bearer ann-2")],
            &[("authorization", "Bearer bob")],
        ),
        verified(
            "a renewed bearer token, verified",
            &[ANN, ("x-verified", "ann")],
            &[("authorization", "Bearer ann-2"), ("x-verified", "ann")],
            &[("authorization", "Bearer bob"), ("x-verified", "bob")],
        ),
        steady(
            "Basic",
            &[("authorization", "Basic YW5uOng=")],
            &[("authorization", "Basic YW5uOng=")],
            &[("authorization", "Basic Ym9iOng=")],
        ),
        steady(
            "Basic of a staging server, and a session",
            &[("authorization", "Basic c3RhZ2U6eA=="), ("cookie", "sid=ann")],
            &[("authorization", "Basic c3RhZ2U6eA=="), ("cookie", "sid=ann; _ga=1")],
            &[("authorization", "Basic c3RhZ2U6eA=="), ("cookie", "sid=bob")],
        ),
        steady("an API key", &[("x-api-key", "ann")], &[("x-api-key", "ann")], &[("x-api-key", "bob")]),
        steady(
            "an API key of an application, and a session",
            &[("x-api-key", "web"), ("cookie", "sid=ann")],
            &[("x-api-key", "web"), ("cookie", "sid=ann")],
            &[("x-api-key", "web"), ("cookie", "sid=bob")],
        ),
        steady("a session", &[("cookie", "sid=ann")], &[("cookie", "sid=ann")], &[("cookie", "sid=bob")]),
        renewed("a rolling session", &[("cookie", "sid=ann-1")], &[("cookie", "sid=ann-2")], &[("cookie", "sid=bob")]),
        verified(
            "a rolling session, looked up",
            &[("cookie", "sid=ann-1"), ("x-verified", "ann")],
            &[("cookie", "sid=ann-2"), ("x-verified", "ann")],
            &[("cookie", "sid=bob"), ("x-verified", "bob")],
        ),
        told(
            "a session by its cookie",
            |layer| layer.scope(scope::cookie("sid")),
            [&[("cookie", "sid=ann; theme=dark")], &[("cookie", "theme=light; sid=ann")], &[("cookie", "sid=bob")]],
            Run,
        ),
        steady(
            "analytics and load balancers beside a session",
            &[("cookie", "_ga=1; AWSALB=1; sid=ann")],
            &[("cookie", "sid=ann; _ga=2; AWSALB=2; _gid=3")],
            &[("cookie", "_ga=1; AWSALB=1; sid=bob")],
        ),
        steady(
            "cookies in another order and in several lines",
            &[("cookie", "sid=ann; theme=dark")],
            &[("cookie", "theme=dark"), ("cookie", "sid=ann")],
            &[("cookie", "sid=bob; theme=dark")],
        ),
        Way {
            warned: Some("a cookie beside an `Authorization`"),
            ..steady(
                "a rolling session beside a bearer token",
                &[ANN, ("cookie", "sid=1")],
                &[ANN, ("cookie", "sid=2")],
                &[("authorization", "Bearer bob"), ("cookie", "sid=1")],
            )
        },
        steady(
            "a bearer token that was never set, beside a session",
            &[("authorization", "Bearer undefined"), ("cookie", "sid=ann")],
            &[("authorization", "Bearer undefined"), ("cookie", "sid=ann")],
            &[("authorization", "Bearer undefined"), ("cookie", "sid=bob")],
        ),
        told(
            "a session in a header of its own",
            |layer| layer.credentials([credential::header("X-Session"), credential::cookie("sid")]),
            [&[("x-session", "ann")], &[("x-session", "ann"), ("cookie", "theme=dark")], &[("x-session", "bob")]],
            Refused,
        ),
        told(
            "a client certificate, which the server has put into the extensions",
            |layer| layer.scope(scope::extension(|certificate: &Certificate| certificate.0.clone())),
            [&[("x-certificate", "ann")], &[("x-certificate", "ann")], &[("x-certificate", "bob")]],
            Run,
        ),
        told(
            "tenants by host",
            |layer| layer.scope(scope::host()),
            [&[("host", "a.example"), ANN], &[("host", "A.example:443"), ANN], &[("host", "b.example"), ANN]],
            Run,
        ),
    ];
    ways.extend(gateways());
    ways.extend(signed());
    ways.extend(unknown());
    ways
}

/// Gateways that say who asks.
fn gateways() -> impl Iterator<Item = Way> {
    let names: [[Headers; 2]; 6] = [
        [&[("x-forwarded-user", "ann")], &[("x-forwarded-user", "bob")]],
        [&[("x-auth-request-user", "ann")], &[("x-auth-request-user", "bob")]],
        [&[("remote-user", "ann")], &[("remote-user", "bob")]],
        [
            &[("x-amzn-oidc-identity", "ann"), ("x-amzn-oidc-data", "signed-1")],
            &[("x-amzn-oidc-identity", "bob"), ("x-amzn-oidc-data", "signed-3")],
        ],
        [&[("x-goog-authenticated-user-id", "ann")], &[("x-goog-authenticated-user-id", "bob")]],
        [
            &[("cf-access-authenticated-user-email", "ann@a.example")],
            &[("cf-access-authenticated-user-email", "bob@a.example")],
        ],
    ];
    names.into_iter().map(|[ann, bob]| steady(ann[0].0, ann, ann, bob))
}

/// Requests that are signed one by one.
fn signed() -> Vec<Way> {
    let schemes: [[&str; 4]; 4] = [
        [
            "AWS4-HMAC-SHA256 Credential=ann/1, Signature=1",
            "AWS4-HMAC-SHA256 Credential=ann/1, Signature=2",
            "ann",
            "bob",
        ],
        [
            "OAuth oauth_consumer_key=\"ann\", oauth_nonce=\"1\"",
            "OAuth oauth_consumer_key=\"ann\", oauth_nonce=\"2\"",
            "ann",
            "bob",
        ],
        ["Digest username=\"ann\", nc=00000001", "Digest username=\"ann\", nc=00000002", "ann", "bob"],
        // The token is renewed; its proof, in the header `DPoP`, does not count.
        ["DPoP ann-1", "DPoP ann-2", "ann", "bob"],
    ];
    let leak = |list: Vec<(&'static str, &'static str)>| -> Headers { list.leak() };
    let ways = schemes.into_iter().flat_map(|[first, again, ann, bob]| {
        let sent = |value, user| leak(vec![("authorization", value), ("dpop", again), ("x-verified", user)]);
        let by = [sent(first, ann), sent(again, ann), sent("other", bob)];
        [renewed(first, by[0], by[1], by[2]), verified(first, by[0], by[1], by[2])]
    });
    ways.collect()
}

/// Callers that cannot be distinguished: the log says so, and what to do about it.
fn unknown() -> Vec<Way> {
    let way = |name, headers: [Headers; 3], warned| Way {
        stranger: (headers[2], Replay),
        warned: Some(warned),
        ..steady(name, headers[0], headers[1], headers[2])
    };
    vec![
        way("nobody", [&[], &[], &[]], "without any credential"),
        way("analytics alone", [&[("cookie", "_ga=1")], &[("cookie", "_ga=2")], &[("cookie", "_ga=3")]], "without any"),
        way(
            "a header that is not listed",
            [&[("x-session", "ann")], &[("x-session", "ann")], &[("x-session", "bob")]],
            "without any credential",
        ),
        way(
            "a gateway's token alone",
            [
                &[("cf-access-jwt-assertion", "1")],
                &[("cf-access-jwt-assertion", "2")],
                &[("x-goog-iap-jwt-assertion", "3")],
            ],
            "a gateway's token is signed anew",
        ),
        told("nobody, and the layer was told so", IdempotencyLayer::unscoped, [&[], &[], &[]], Replay),
    ]
}

#[derive(Clone)]
struct User(String);

#[derive(Clone)]
struct Certificate(String);

/// Stands for the server and its authentication: what they have verified is in the extensions.
async fn verify(headers: HeaderMap, mut request: Request, next: Next) -> Response {
    let of = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    of("x-verified").map(|user| request.extensions_mut().insert(User(user)));
    of("x-certificate").map(|subject| request.extensions_mut().insert(Certificate(subject)));
    next.run(request).await
}

async fn send(app: &Router, headers: Headers, body: &'static str) -> Gets {
    let request = Request::post("/orders").header("Idempotency-Key", "order-7");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    match (response.status(), response.headers().contains_key("idempotent-replayed")) {
        (StatusCode::UNPROCESSABLE_ENTITY, _) => {
            let body = axum::body::to_bytes(response.into_body(), 9999).await.unwrap();
            assert!(String::from_utf8_lossy(&body).contains("#other-caller\""), "{body:?}");
            Refused
        }
        (StatusCode::CREATED, true) => Replay,
        (StatusCode::CREATED, false) => Run,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_answer_for_a_stranger_and_no_refusal_of_an_honest_retry_without_a_word() {
    let (heard, _guard) = Heard::listen();
    for Way { name, layer, first, retry, stranger, warned } in ways() {
        let app = Router::new()
            .route("/orders", post(async || StatusCode::CREATED))
            .layer(layer(IdempotencyLayer::new(MemoryStore::new())))
            .layer(middleware::from_fn(verify));
        assert_eq!(send(&app, first, "one").await, Run, "{name}: the first try");
        assert_eq!(send(&app, retry.0, "one").await, retry.1, "{name}: an honest retry");
        assert_eq!(send(&app, stranger.0, "one").await, stranger.1, "{name}: another caller");
        // What is said of one route is said once.
        assert_eq!(send(&app, stranger.0, "one").await, if stranger.1 == Refused { Refused } else { Replay }, "{name}");
        let said = heard.take();
        match warned {
            None => assert_eq!(said, Vec::<String>::new(), "{name}"),
            Some(words) => {
                assert!(said.iter().any(|line| line.starts_with("WARN") && line.contains(words)), "{name}: {said:?}");
                let mut once = said.clone();
                once.dedup();
                assert_eq!(once.len(), said.len(), "{name}: {said:?}");
                assert!(said.iter().all(|line| line.contains("/orders") && !line.contains("ann")), "{name}: {said:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_warning_is_once_a_route() {
    let (heard, _guard) = Heard::listen();
    let layer = IdempotencyLayer::new(MemoryStore::new());
    let app = Router::new()
        .route("/orders/{id}", post(async || StatusCode::CREATED))
        .route("/payments", post(async || StatusCode::CREATED))
        .layer(layer);
    for (at, path) in ["/orders/1", "/orders/2", "/payments", "/orders/3", "/payments"].into_iter().enumerate() {
        let request = Request::post(path).header("Idempotency-Key", at).body(Body::empty()).unwrap();
        assert_eq!(app.clone().oneshot(request).await.unwrap().status(), StatusCode::CREATED);
    }
    let said = heard.take();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("/orders/{id}") && said[1].contains("/payments"), "{said:?}");
    for call in ["`.scope(..)`", "`.credentials(..)`", "`.unscoped()`"] {
        assert!(said[0].contains(call), "{call}");
    }
}

#[tokio::test]
async fn a_layer_that_was_told_is_silent() {
    let (heard, _guard) = Heard::listen();
    let told: [fn(IdempotencyLayer) -> IdempotencyLayer; 3] = [
        |layer| layer.unscoped(),
        |layer| layer.credentials([AUTHORIZATION]),
        |layer| layer.scope(scope::header("X-Tenant").optional()),
    ];
    for tell in told {
        let layer = tell(IdempotencyLayer::new(MemoryStore::new()));
        let app = Router::new().route("/orders", post(async || StatusCode::CREATED)).layer(layer);
        for headers in [&[][..], &[ANN, ("cookie", "sid=1")]] {
            send(&app, headers, "one").await;
        }
    }
    let said: Vec<_> = heard.take().into_iter().filter(|line| !line.contains("refused (422")).collect();
    assert_eq!(said, Vec::<String>::new());
}
