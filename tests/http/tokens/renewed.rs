//! New tokens: in the place of one that has expired, or of one whose form was not good. Never two for one order.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Request},
    routing::{get, post},
};
use futures_util::stream;
use tokio::sync::oneshot;
use tower::ServiceExt;
use tower_idempotency::{
    OnDuplicate, Refusal, TokenLayer, scope,
    store::{StoreAdmin, StoreErrorKind, StoreVerb},
    testing::{Faults, FaultyStore},
    token::{IssueError, TokenIssuer},
};

use crate::{
    common::{Seen, see},
    tokens::fixture::{Fixture, Kind, LIFE, Shop, submission, tokens},
};

const LEASE: Duration = Duration::from_millis(600);

fn of(user: Option<&str>, token: &str, body: impl Into<Body>) -> Request<Body> {
    let mut request = submission(token, "").map(|_| body.into());
    if let Some(user) = user {
        request.headers_mut().insert("X-User", user.parse().unwrap());
    }
    request
}

/// What a submission is answered with, and the token in it.
async fn submit(shop: &Shop, user: Option<&str>, token: &str, body: &str) -> (Seen, Option<String>) {
    let (seen, headers) = shop.send_for_headers(of(user, token, body.to_owned())).await;
    let brought = |headers: &HeaderMap| Some(headers.get("x-submit-token")?.to_str().unwrap().to_owned());
    let token = brought(&headers);
    assert!(token.is_none() || headers["cache-control"] == "no-store");
    (seen, token)
}

/// A process whose store fails as configured, on the store of all.
fn faulty(fixture: &Fixture) -> (Faults, Shop) {
    let store = FaultyStore::new(fixture.store.clone());
    let faults = store.faults();
    let adjust = |layer: TokenLayer| layer.rotate_on_failure().lease(LEASE).store_timeout(Duration::from_millis(150));
    (faults, Shop::new(tokens(Arc::new(store), fixture.kind).store_timeout(Duration::from_millis(150)), adjust))
}

pub(crate) async fn an_expired_one_brings_another(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer);
    let (anns, nobodys) = (shop.token(Some("ann")).await, shop.token(None).await);
    assert_eq!(submit(&shop, Some("ann"), "x", "").await.1, None, "it never was a token");
    fixture.pass(LIFE).await;

    let (seen, fresh) = submit(&shop, Some("ann"), &anns, "").await;
    assert_eq!((&*seen.problem(), shop.runs.get()), ("token-invalid", 0));
    let fresh = fresh.unwrap();
    assert_eq!(submit(&shop, Some("bob"), &fresh, "").await.0.problem(), "token-invalid", "it is for ann");
    assert_eq!(submit(&shop, Some("ann"), &fresh, "").await, (Seen::first(201, "run 1"), None));

    // Whether a stored one was ever issued is not known any more: whose it would be says the request, if anybody.
    let stored = fixture.kind == Kind::Stored;
    assert_eq!(submit(&shop, None, &nobodys, "").await.1.is_none(), stored);
    let (seen, bobs) = submit(&shop, Some("bob"), &anns, "").await;
    assert_eq!((&*seen.problem(), bobs.is_some()), ("token-invalid", stored));
    if let Some(bobs) = bobs {
        assert_eq!(submit(&shop, Some("ann"), &bobs, "").await.0.problem(), "token-invalid", "it is for bob");
    }
}

/// The answer is the same as without it.
pub(crate) async fn a_store_that_issues_nothing_refuses_all_the_same(fixture: Fixture) {
    let (faults, shop) = faulty(&fixture);
    let anns = shop.token(Some("ann")).await;
    fixture.pass(LIFE).await;
    faults.on(StoreVerb::Issue).fail(StoreErrorKind::Unavailable);
    let (seen, fresh) = submit(&shop, Some("ann"), &anns, "").await;
    assert_eq!((&*seen.problem(), fresh.is_none()), ("token-invalid", fixture.kind == Kind::Stored));
}

/// A body that is held back gains no time.
pub(crate) async fn one_that_expires_while_its_body_comes_is_refused(fixture: Fixture) {
    let shop = fixture.shop(|layer| layer.on_duplicate(OnDuplicate::Replay));
    let token = shop.token(None).await;
    let (go_on, told) = oneshot::channel::<()>();
    let body = Body::from_stream(stream::once(async {
        let _ = told.await;
        Ok::<_, Infallible>(Bytes::from("tea"))
    }));
    let slow = tokio::spawn(shop.app.clone().oneshot(of(None, &token, body)));
    tokio::task::yield_now().await;
    assert_eq!(submit(&shop, None, &token, "tea").await.0, Seen::first(201, "run 1"));
    fixture.pass(LIFE).await;
    go_on.send(()).unwrap();
    let slow = see(slow.await.unwrap().unwrap()).await;
    if fixture.kind == Kind::Stored {
        assert_eq!(slow, Seen::replay(201, "run 1"), "its record says what became of it");
    } else {
        assert_eq!(slow.problem(), "token-invalid");
    }
    assert_eq!(shop.runs.get(), 1);
}

/// If it were sent earlier, both would be valid: the old one once its lease has lapsed, and the new one.
pub(crate) async fn a_successor_is_told_once_it_is_recorded(fixture: Fixture) {
    let (faults, shop) = faulty(&fixture);
    let old = shop.token(Some("ann")).await;
    for verb in [StoreVerb::Settle, StoreVerb::Renew] {
        faults.on(verb).fail(StoreErrorKind::Unavailable);
    }
    assert_eq!(submit(&shop, Some("ann"), &old, "bad").await, (Seen::first(422, "run 1"), None));
    fixture.pass(LEASE).await;
    let other = fixture.shop(TokenLayer::rotate_on_failure);
    assert_eq!(submit(&other, Some("ann"), &old, "corrected").await, (Seen::first(201, "run 1"), None));
    assert_eq!(submit(&other, Some("ann"), &old, "corrected").await.0.problem(), "token-used");
}

/// A successor that is recorded late is sent late.
pub(crate) async fn a_successor_is_told_by_the_kept_answer(fixture: Fixture) {
    let (faults, shop) = faulty(&fixture);
    let old = shop.token(Some("ann")).await;
    faults.on(StoreVerb::Settle).fail(StoreErrorKind::Unavailable);
    assert_eq!(submit(&shop, Some("ann"), &old, "bad").await, (Seen::first(422, "run 1"), None));
    faults.heal();
    let mut tries = 0;
    let successor = loop {
        let (seen, successor) = submit(&shop, Some("ann"), &old, "bad").await;
        if let Some(successor) = successor {
            assert_eq!(seen, Seen::replay(422, "run 1"));
            break successor;
        }
        tries += 1;
        assert!(tries < 200 && seen.problem() == "request-in-progress", "{seen:?}");
        fixture.pass(Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
    };
    assert_eq!(submit(&shop, Some("ann"), &successor, "corrected").await.0, Seen::first(201, "run 2"));
}

/// Whatever fails while a token is replaced, there is one successor, and it is one token.
pub(crate) async fn there_is_one_successor_whatever_fails(fixture: Fixture) {
    for verb in [StoreVerb::Issue, StoreVerb::Settle] {
        for after_effect in [false, true] {
            let (faults, shop) = faulty(&fixture);
            let old = shop.token(Some("ann")).await;
            let fault = faults.on(verb);
            let fault = if after_effect { fault.after_effect() } else { fault };
            fault.fail(StoreErrorKind::Timeout);
            let (seen, mut told) = submit(&shop, Some("ann"), &old, "bad").await;
            assert_eq!(seen.status, 422, "{verb} {after_effect}");
            faults.heal();
            // A process of its own goes on, once the first one's lease is over.
            fixture.pass(LEASE).await;
            let other = fixture.shop(TokenLayer::rotate_on_failure);
            for _ in 0..3 {
                let (seen, successor) = submit(&other, Some("ann"), &old, "bad").await;
                assert_eq!(seen.status, 422);
                let successor = successor.unwrap();
                assert_eq!(told.get_or_insert_with(|| successor.clone()), &successor, "{verb} {after_effect}");
            }
            let successor = told.unwrap();
            assert_eq!(submit(&other, Some("ann"), &successor, "good").await.0.status, 201, "{verb} {after_effect}");
            assert_eq!(submit(&other, Some("ann"), &successor, "good").await.0.problem(), "token-used");
            assert_eq!(submit(&other, Some("ann"), &old, "good").await.0.status, 422);
        }
    }
}

/// It is refused before any database is asked to keep it, and not as something that passes.
pub(crate) async fn a_principal_is_a_text_that_any_store_can_keep(fixture: Fixture) {
    let issuer = tokens(fixture.store.clone(), fixture.kind);
    for odd in ["a\0b", "a\nb", " ", ""] {
        let error = issuer.issue("order", Some(odd)).await.unwrap_err();
        assert_eq!((error.kind(), error.is_temporary()), (StoreErrorKind::Invalid, false), "{odd:?}");
        assert!(error.is_without_effect());
        assert!(issuer.issue(odd, None).await.is_err());
    }
    let layer = issuer.layer("order").principal(scope::from_fn(|_| Some("a\0b".to_owned())));
    let page = |tokens: TokenIssuer| async move {
        let refused = tokens.issue().await.unwrap_err();
        assert!(matches!(refused.refusal(), Refusal::KeyInvalid { .. }), "{refused:?}");
        Err::<(), IssueError>(refused)
    };
    let app = Router::new().route("/submit", get(page).merge(post(|| async { "ordered" })).layer(layer));
    let page = app.clone().oneshot(Request::get("/submit").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(see(page).await.problem(), "key-invalid");
    let submitted = app.oneshot(submission(&"x".repeat(43), "")).await.unwrap();
    assert!(!submitted.headers().contains_key("x-submit-token"));
    assert_eq!(see(submitted).await.problem(), "token-invalid");
    assert!(fixture.store.list(tower_idempotency::store::Filter::All, None, 1).await.unwrap().entries.is_empty());
}
