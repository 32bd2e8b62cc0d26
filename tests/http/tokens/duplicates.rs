//! What a used token brings, if it is not refused: never another order's success.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    http::{Response, StatusCode},
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{MemoryStore, OnDuplicate, Operation, TokenLayer, Tokens, policy::Reply};

use crate::{
    common::{Seen, see},
    tokens::fixture::{Kind, Shop, submission, tokens},
};

fn shop(adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Shop {
    Shop::new(tokens(Arc::new(MemoryStore::new()), Kind::Stored), adjust)
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_ones_own() {
    let reply = Reply::from_fn(|duplicate| {
        let kept = duplicate.kept().map_or("nothing", |kept| std::str::from_utf8(kept.body()).unwrap());
        Response::new(Bytes::from(format!("ordered before: {kept}")))
    });
    let shop = shop(|layer| layer.on_duplicate(OnDuplicate::Respond(reply)));
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "bad").await, Seen::first(422, "run 1"));
    assert_eq!(shop.submit(&token, None, "tea").await, Seen::first(201, "run 2"));
    assert_eq!(shop.submit(&token, None, "tea").await, Seen::first(200, "ordered before: run 2"));
    assert_eq!(shop.submit(&token, None, "coffee").await.problem(), "key-reused");
    assert_eq!(shop.runs.get(), 2);
}

/// The handler has its body as well, and finds out that it must only read.
#[tokio::test(start_paused = true)]
async fn a_duplicate_that_reaches_the_handler() {
    let tokens = Tokens::new(MemoryStore::new());
    let handler = |operation: Operation, body: Bytes| async move {
        let kept = operation.kept().map(|kept| kept.status().as_u16());
        (StatusCode::CREATED, format!("{} {kept:?} {body:?}", operation.is_duplicate()))
    };
    let layer = tokens.layer("order").on_duplicate(OnDuplicate::PassThrough);
    let app: Router = Router::new().route("/submit", post(handler).layer(layer));
    let token = tokens.issue("order", None).await.unwrap();
    let submit = async |body: &str| see(app.clone().oneshot(submission(token.as_str(), body)).await.unwrap()).await;
    assert_eq!(submit("tea").await, Seen::first(201, "false None b\"tea\""));
    for _ in 0..2 {
        assert_eq!(submit("tea").await, Seen::first(201, "true Some(201) b\"tea\""));
    }
    assert_eq!(submit("coffee").await.problem(), "key-reused");
}
