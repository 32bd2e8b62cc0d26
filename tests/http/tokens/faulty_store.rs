//! What needs a store with faults, or one that is looked into.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, http::Request, routing::post};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, TokenLayer, Tokens, scope,
    store::{Filter, State, StoreAdmin, StoreErrorKind, StoreVerb},
    testing::FaultyStore,
};

use crate::{
    common::{post as keyed, see},
    tokens::fixture::{Kind, LIFE, Shop, tokens},
};

const MINUTE: Duration = Duration::from_secs(60);

fn shop(adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> (FaultyStore<MemoryStore>, Shop) {
    let store = FaultyStore::new(MemoryStore::new());
    let shop = Shop::new(tokens(Arc::new(store.clone()), Kind::Stored), adjust);
    (store, shop)
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails() {
    let (store, shop) = shop(|layer| layer);
    let faults = store.faults();
    let tokens = shop.tokens.clone().lifetime(2 * MINUTE);
    let token = tokens.issue("order", None).await.unwrap();
    faults.on(StoreVerb::Claim).once().after_effect().fail(StoreErrorKind::Unavailable);
    assert_eq!(shop.submit(token.as_str(), None, "").await.problem(), "store-unavailable");
    tokio::time::sleep(MINUTE).await;
    // The claim that took effect was released, and the token with it.
    assert_eq!(shop.submit(token.as_str(), None, "").await.status, 201);
    faults.on(StoreVerb::Issue).once().fail(StoreErrorKind::Full);
    assert_eq!(tokens.issue("order", None).await.unwrap_err().kind(), StoreErrorKind::Full);
    faults.on(StoreVerb::Issue).once().hang();
    assert_eq!(tokens.issue("order", None).await.unwrap_err().kind(), StoreErrorKind::Timeout);
}

/// The stored kind is bounded by the store, which drops nothing that is alive, and leaves half of its room to what runs.
#[tokio::test(start_paused = true)]
async fn a_flood_of_issues() {
    let store = MemoryStore::builder().capacity(100).build();
    let shop = Shop::new(tokens(Arc::new(store.clone()), Kind::Stored), |layer| layer);
    let first = shop.token(None).await;
    let mut refused = 0;
    for _ in 0..1000 {
        if let Err(error) = shop.tokens.issue("order", None).await {
            assert_eq!(error.kind(), StoreErrorKind::Full);
            refused += 1;
        }
    }
    assert_eq!(refused, 951);
    let layer = IdempotencyLayer::new(store).unscoped();
    let orders: Router = Router::new().route("/orders", post(|| async { "ordered" }).layer(layer));
    for number in 0..50 {
        let seen = see(orders.clone().oneshot(keyed("/orders", &number.to_string(), "")).await.unwrap()).await;
        assert_eq!((seen.status.as_u16(), seen.replayed), (200, false), "{number}: {}", seen.body);
    }
    assert_eq!(shop.submit(&first, None, "").await.status, 201);
    // Those that nobody spends make room when they expire.
    tokio::time::advance(LIFE).await;
    shop.token(None).await;
}

/// With a share, a flood of one principal's is its own affair.
#[tokio::test(start_paused = true)]
async fn a_flood_of_one_principals_issues() {
    let store = MemoryStore::builder().share_per_scope(3).build();
    let checkout = Tokens::new(store).layer("order").principal(scope::header("X-User"));
    let app: Router = Router::new().route("/token", checkout.endpoint());
    let ask = async |user: &str| {
        let request = Request::get("/token").header("X-User", user).body(Body::empty()).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        (response.headers().contains_key("retry-after"), see(response).await)
    };
    for _ in 0..3 {
        assert_eq!(ask("ann").await.1.status, 200);
    }
    for _ in 0..10 {
        let (retry_after, refused) = ask("ann").await;
        assert_eq!((refused.status.as_u16(), &*refused.problem(), retry_after), (429, "too-many-keys", true));
    }
    assert_eq!(ask("bob").await.1.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_store_never_sees_it() {
    let (store, shop) = shop(|layer| layer);
    let token = shop.token(Some("ann")).await;
    let page = store.list(Filter::All, None, 10).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    let entry = &page.entries[0];
    assert_eq!(entry.key.route(), "order");
    assert!(!String::from_utf8_lossy(entry.key.as_bytes()).contains(&token));
    let shown = format!("{:?} {:?}", shop.tokens.issue("order", None).await.unwrap(), shop.tokens);
    assert!(!shown.contains("text"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn where_no_other_can_be_issued_a_failure_gives_it_back() {
    let (store, shop) = shop(TokenLayer::rotate_on_failure);
    let token = shop.token(None).await;
    store.faults().on(StoreVerb::Issue).once().fail(StoreErrorKind::Full);
    let (seen, headers) = shop.send_for_headers(crate::tokens::fixture::submission(&token, "bad")).await;
    assert_eq!(seen.status, 422);
    assert!(!headers.contains_key("x-submit-token"));
    assert_eq!(shop.submit(&token, None, "corrected").await.status, 201);
}

/// A panic has no answer that could bring another.
#[tokio::test(start_paused = true)]
async fn a_panic_gives_it_back() {
    let (store, shop) = shop(TokenLayer::rotate_on_failure);
    let token = shop.token(None).await;
    let app = shop.app.clone();
    let request = crate::tokens::fixture::submission(&token, "worse");
    assert!(tokio::spawn(tower::ServiceExt::oneshot(app, request)).await.is_err());
    let page = store.list(Filter::All, None, 10).await.unwrap();
    assert_eq!(page.entries[0].record.state, State::Issued);
    assert_eq!(shop.submit(&token, None, "corrected").await.status, 201);
}
