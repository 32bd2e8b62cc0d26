//! A service that asks for tokens, and everything that a test wants to look at.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Request, StatusCode},
    routing::post,
};
use tokio::time::{Instant, advance, sleep};
use tower::ServiceExt;
#[cfg(feature = "signed-tokens")]
use tower_idempotency::token::SigningKeys;
use tower_idempotency::{Operation, TokenLayer, Tokens, scope, store::StoreAdmin};

use crate::common::{Counter, Seen, see};

/// How long a token lives.
pub(crate) const LIFE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stored,
    #[cfg(feature = "signed-tokens")]
    Signed,
}

/// A store, and how time passes for it.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn StoreAdmin>,
    pub(crate) kind: Kind,
    /// Tokio's time stands still, and is the store's.
    pub(crate) paused: bool,
}

impl Fixture {
    pub(crate) async fn pass(&self, time: Duration) {
        if self.paused {
            advance(time).await;
        } else {
            sleep(time).await;
        }
    }

    /// Each call makes what is a process of its own on the same store.
    pub(crate) fn shop(&self, adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Shop {
        Shop::new(tokens(self.store.clone(), self.kind), adjust)
    }
}

pub(crate) fn tokens(store: Arc<dyn StoreAdmin>, kind: Kind) -> Tokens {
    let tokens = match kind {
        Kind::Stored => Tokens::new(store),
        #[cfg(feature = "signed-tokens")]
        Kind::Signed => {
            let began = Instant::now();
            Tokens::signed(store, SigningKeys::new([7; 32]).unwrap()).clock(move || clock() + began.elapsed())
        }
    };
    tokens.lifetime(LIFE)
}

/// The same for all shops of a test.
fn clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

pub(crate) struct Shop {
    pub(crate) tokens: Tokens,
    pub(crate) app: Router,
    pub(crate) runs: Counter,
}

impl Shop {
    /// Its handler fails if the body begins with "bad", panics if it begins with "worse", and answers with a status that
    /// is the body.
    pub(crate) fn new(tokens: Tokens, adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Self {
        let runs = Counter::default();
        let handler = {
            let runs = runs.clone();
            move |operation: Operation, body: Bytes| async move {
                assert_eq!(operation.key().len(), 64, "the handler sees the digest");
                let run = runs.next();
                assert!(!body.starts_with(b"worse"), "as it should");
                let fails = body.starts_with(b"bad");
                let otherwise = if fails { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::CREATED };
                (StatusCode::from_bytes(&body).unwrap_or(otherwise), format!("run {run}"))
            }
        };
        let layer = adjust(tokens.layer("order").principal(scope::header("X-User").optional()));
        Self { tokens, app: Router::new().route("/submit", post(handler).layer(layer)), runs }
    }

    pub(crate) async fn token(&self, user: Option<&str>) -> String {
        self.tokens.issue("order", user).await.unwrap().as_str().to_owned()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Seen {
        self.send_for_headers(request).await.0
    }

    pub(crate) async fn send_for_headers(&self, request: Request<Body>) -> (Seen, HeaderMap) {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let headers = response.headers().clone();
        (see(response).await, headers)
    }

    pub(crate) async fn submit(&self, token: &str, user: Option<&str>, body: &str) -> Seen {
        let mut request = submission(token, body);
        if let Some(user) = user {
            request.headers_mut().insert("X-User", user.parse().unwrap());
        }
        self.send(request).await
    }
}

pub(crate) fn submission(token: &str, body: &str) -> Request<Body> {
    Request::post("/submit").header("X-Submit-Token", token).body(Body::from(body.to_owned())).unwrap()
}

pub(crate) const URLENCODED: &str = "application/x-www-form-urlencoded";
pub(crate) const MULTIPART: &str = "multipart/form-data; boundary=b";

pub(crate) fn form(content_type: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post("/submit").header("Content-Type", content_type).body(body.into()).unwrap()
}

/// A part of a multipart body whose boundary is `b`.
pub(crate) fn part(name: &str, value: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}
