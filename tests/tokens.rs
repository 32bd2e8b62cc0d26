//! One token, one operation.
#![cfg(all(feature = "axum", feature = "form", feature = "memory", feature = "testing"))]

mod common;

use std::time::Duration;

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, StatusCode},
    routing::post,
};
use common::{Counter, Seen, see};
use http_body_util::BodyExt;
use tokio::time::advance;
use tower::ServiceExt;
use tower_idempotency::{
    MemoryStore, OnDuplicate, Operation, StoreErrorKind, StoreVerb, TokenLayer, Tokens, scope,
    store::{Filter, Operator},
    testing::FaultyStore,
};

const MINUTE: Duration = Duration::from_secs(60);

struct Shop {
    store: FaultyStore<MemoryStore>,
    tokens: Tokens,
    app: Router,
    runs: Counter,
}

impl Shop {
    fn new(adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Self {
        let store = FaultyStore::new(MemoryStore::new());
        let tokens = Tokens::new(store.clone());
        let runs = Counter::default();
        let handler = {
            let runs = runs.clone();
            move |operation: Operation, body: Bytes| async move {
                assert_eq!(operation.key().len(), 64, "the handler sees the digest");
                let run = runs.next();
                let fails = body.starts_with(b"bad");
                (if fails { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::CREATED }, format!("run {run}"))
            }
        };
        let layer = adjust(tokens.layer("order").principal(scope::header("X-User").optional()));
        Self { store, tokens, app: Router::new().route("/submit", post(handler).layer(layer)), runs }
    }

    async fn token(&self, user: Option<&str>) -> String {
        self.tokens.issue("order", user).await.unwrap().as_str().to_owned()
    }

    async fn send(&self, request: Request<Body>) -> Seen {
        see(self.app.clone().oneshot(request).await.unwrap()).await
    }

    async fn submit(&self, token: &str, user: Option<&str>, body: &str) -> Seen {
        let mut request = Request::post("/submit").header("X-Submit-Token", token);
        if let Some(user) = user {
            request = request.header("X-User", user);
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }
}

fn form(content_type: &str, body: String) -> Request<Body> {
    Request::post("/submit").header("Content-Type", content_type).body(Body::from(body)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_is_good_once_and_for_its_life() {
    let shop = Shop::new(|layer| layer);
    let [one, two, three] = [shop.token(None).await, shop.token(None).await, shop.token(None).await];
    for token in [&one, &two] {
        assert_eq!(shop.submit(token, None, "").await.status, 201);
        assert_eq!(shop.submit(token, None, "").await.problem(), "token-used");
    }
    advance(5 * MINUTE).await;
    assert_eq!(shop.submit(&three, None, "").await.problem(), "token-invalid");
    assert_eq!(shop.submit(&one, None, "").await.problem(), "token-used");
    assert_eq!(shop.runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_issued_is_never_accepted() {
    let shop = Shop::new(|layer| layer);
    let others = shop.tokens.issue("refund", None).await.unwrap();
    for token in [&"x".repeat(43), "x", others.as_str()] {
        assert_eq!(shop.submit(token, None, "").await.problem(), "token-invalid");
    }
    // What cannot be a token is none either.
    for token in ["", "a b", "a,b", &"x".repeat(10_000)] {
        assert_eq!(shop.submit(token, None, "").await.problem(), "token-invalid", "{token}");
    }
    let missing = shop.send(Request::post("/submit").body(Body::empty()).unwrap()).await;
    assert_eq!((missing.status.as_u16(), &*missing.problem()), (400, "token-missing"));
    assert_eq!(shop.runs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_neither_succeeds_nor_spends_it() {
    let shop = Shop::new(|layer| layer);
    let (anns, nobodys) = (shop.token(Some("ann")).await, shop.token(None).await);
    for user in [Some("bob"), Some("Ann"), None] {
        assert_eq!(shop.submit(&anns, user, "").await.problem(), "token-invalid", "{user:?}");
    }
    assert_eq!(shop.submit(&nobodys, Some("ann"), "").await.problem(), "token-invalid");
    assert_eq!(shop.submit(&anns, Some("ann"), "").await.status, 201);
    assert_eq!(shop.submit(&anns, Some("bob"), "").await.problem(), "token-invalid", "not even that it was used");
    assert_eq!(shop.submit(&nobodys, None, "").await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_failure_gives_it_back_with_its_first_expiry() {
    let shop = Shop::new(|layer| layer);
    let token = shop.token(None).await;
    advance(3 * MINUTE).await;
    assert_eq!(shop.submit(&token, None, "bad").await.status, 422);
    assert_eq!(shop.submit(&token, None, "bad again").await.status, 422);
    advance(2 * MINUTE).await;
    assert_eq!(shop.submit(&token, None, "good").await.problem(), "token-invalid");
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "bad").await.status, 422);
    assert_eq!(shop.submit(&token, None, "corrected").await.status, 201);
    assert_eq!(shop.submit(&token, None, "corrected").await.problem(), "token-used");
}

#[tokio::test(start_paused = true)]
async fn in_a_form() {
    let shop = Shop::new(|layer| layer);
    let urlencoded = async |token: &str| form("application/x-www-form-urlencoded", format!("item=7&_token={token}"));
    let multipart = async |token: &str| {
        let body = format!("--b\r\nContent-Disposition: form-data; name=\"_token\"\r\n\r\n{token}\r\n--b--\r\n");
        form("multipart/form-data; boundary=b", body)
    };
    let token = shop.token(None).await;
    assert_eq!(shop.send(urlencoded(&token).await).await.status, 201);
    assert_eq!(shop.send(multipart(&token).await).await.problem(), "token-used");
    let token = shop.token(None).await;
    assert_eq!(shop.send(multipart(&token).await).await.status, 201);
    // The header is looked at first.
    let token = shop.token(None).await;
    let mut both = urlencoded("another").await;
    both.headers_mut().insert("X-Submit-Token", token.parse().unwrap());
    assert_eq!(shop.send(both).await.status, 201);
    for body in ["item=7", ""] {
        assert_eq!(shop.send(form("application/x-www-form-urlencoded", body.into())).await.problem(), "token-missing");
    }
    let twice = form("application/x-www-form-urlencoded", "_token=a&_token=b".into());
    assert_eq!(shop.send(twice).await.problem(), "token-invalid");
}

#[tokio::test(start_paused = true)]
async fn replay_of_the_same_and_nothing_else() {
    let shop = Shop::new(|layer| layer.on_duplicate(OnDuplicate::Replay));
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "tea").await, Seen::first(201, "run 1"));
    assert_eq!(shop.submit(&token, None, "tea").await, Seen::replay(201, "run 1"));
    assert_eq!(shop.submit(&token, None, "coffee").await.problem(), "key-reused");
    assert_eq!(shop.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn with_its_token_in_the_header_a_body_streams() {
    let tokens = Tokens::new(MemoryStore::new());
    let layer = tokens.layer("upload").request_limit(4);
    let (sender, body) = http_body_util::channel::Channel::<Bytes, std::io::Error>::new(1);
    let handler = |body: Body| async move {
        let mut body = body;
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        (StatusCode::CREATED, first)
    };
    let app: Router = Router::new().route("/", post(handler).layer(layer));
    let token = tokens.issue("upload", None).await.unwrap();
    let request = Request::post("/").header("X-Submit-Token", token.as_str()).body(Body::new(body)).unwrap();
    let mut sender = sender;
    let (answer, sent) = tokio::join!(app.clone().oneshot(request), sender.send_data("longer than the limit".into()));
    // The handler answered while the client was still sending.
    assert_eq!(see(answer.unwrap()).await, Seen::first(201, "longer than the limit"));
    sent.unwrap();
    let again = Request::post("/").header("X-Submit-Token", token.as_str()).body(Body::from("x".repeat(100))).unwrap();
    assert_eq!(see(app.oneshot(again).await.unwrap()).await.problem(), "token-used");
}

#[tokio::test]
async fn twenty_at_once() {
    let shop = Shop::new(|layer| layer);
    let token = shop.token(None).await;
    let submissions = (0..20).map(|_| shop.submit(&token, None, ""));
    let mut statuses: Vec<_> =
        futures_util::future::join_all(submissions).await.iter().map(|seen| seen.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [&[201][..], &[409; 19]].concat());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails() {
    let shop = Shop::new(|layer| layer);
    let faults = shop.store.faults();
    let token = shop.token(None).await;
    faults.on(StoreVerb::Claim).once().after_effect().fail(StoreErrorKind::Unavailable);
    assert_eq!(shop.submit(&token, None, "").await.problem(), "store-unavailable");
    tokio::time::sleep(MINUTE).await;
    // The claim that took effect was released, and the token with it.
    assert_eq!(shop.submit(&token, None, "").await.status, 201);
    faults.on(StoreVerb::Issue).once().fail(StoreErrorKind::Full);
    assert_eq!(shop.tokens.issue("order", None).await.unwrap_err().kind(), StoreErrorKind::Full);
    faults.on(StoreVerb::Issue).once().hang();
    assert_eq!(shop.tokens.issue("order", None).await.unwrap_err().kind(), StoreErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn the_store_never_sees_it() {
    let shop = Shop::new(|layer| layer);
    let token = shop.token(Some("ann")).await;
    let page = shop.store.list(Filter::All, None, 10).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    let entry = &page.entries[0];
    assert_eq!(entry.key.route(), "order");
    assert!(!String::from_utf8_lossy(entry.key.as_bytes()).contains(&token));
    let shown = format!("{:?} {:?}", shop.tokens.issue("order", None).await.unwrap(), shop.tokens);
    assert!(!shown.contains("text"), "{shown}");
}
