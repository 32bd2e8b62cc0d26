//! How each crate is put around the router.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use http::{HeaderValue, Method, Request};
use layer_benches::{
    mix,
    orders::{self, ORDER},
};
use ruts::{CookieOptions, SessionLayer, store::moka::MokaStore};
use tower_cookies::CookieManagerLayer;
use tower_idempotency::{IdempotencyLayer, MemoryStore};

use crate::cratestack::Map;

const DAY: Duration = Duration::from_secs(86_400);

pub struct Crate {
    pub name: &'static str,
    pub protect: fn(Router) -> Router,
    /// A request with a key, or with none.
    pub request: fn(Option<u64>) -> Request<Body>,
}

pub const CRATES: &[Crate] = &[
    Crate { name: "tower-idempotency", protect: ours, request },
    Crate { name: "axum-idempotent 0.6.0", protect: axum_idempotent, request: with_session },
    Crate { name: "cratestack-axum 0.17.2", protect: cratestack, request },
    Crate { name: "idempotent 2.0.0", protect: idempotent, request },
];

fn request(key: Option<u64>) -> Request<Body> {
    orders::request(Method::POST, key, ORDER)
}

fn ours(router: Router) -> Router {
    let store = MemoryStore::builder().capacity(3_000_000).max_bytes(usize::MAX).build();
    router.layer(IdempotencyLayer::new(store).key_optional())
}

/// It takes the key for the whole of what is the same, and takes no fingerprint.
fn axum_idempotent(router: Router) -> Router {
    let store = MokaStore::builder().max_capacity(3_000_000).build();
    let options = IdempotentOptions::default().use_idempotency_key_header(None, false).expire_after(86_400);
    router
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(Arc::new(store)).with_cookie_options(CookieOptions::build().name("session")))
        .layer(CookieManagerLayer::new())
}

/// It keeps answers in sessions, and goes through all of a session's whenever it keeps one: so each key has its own.
fn with_session(key: Option<u64>) -> Request<Body> {
    let mut request = request(key);
    let session = mix(key.unwrap_or_default());
    let cookie = HeaderValue::try_from(format!("session={session:021x}A")).expect("a cookie");
    request.headers_mut().insert(http::header::COOKIE, cookie);
    request
}

fn idempotent(router: Router) -> Router {
    let store = idempotent::memory::MemoryStore::builder().sweep_interval(Duration::from_secs(60));
    router.layer(idempotent::middleware::IdempotencyLayer::new(store.try_build().expect("a store")))
}

fn cratestack(router: Router) -> Router {
    let layer = cratestack_axum::idempotency::IdempotencyLayer::new(Arc::new(Map::default()), DAY);
    router.layer(layer.with_principal_fingerprint(|_| "anybody".to_owned()))
}
