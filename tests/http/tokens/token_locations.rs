//! The places of a token, and what becomes of the body.

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Method, Request, StatusCode},
    routing::post,
};
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, channel::Channel};
use tokio::time::sleep;
use tower::ServiceExt;
use tower_idempotency::{MemoryStore, OnDuplicate, TokenLayer, Tokens};

use crate::{
    common::{Seen, see},
    tokens::fixture::{Kind, MULTIPART, Shop, URLENCODED, form, part, tokens},
};

fn shop(adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Shop {
    Shop::new(tokens(Arc::new(MemoryStore::new()), Kind::Stored), adjust)
}

#[tokio::test(start_paused = true)]
async fn missing_and_malformed() {
    let shop = shop(|layer| layer);
    let token = shop.token(None).await;
    for request in [
        Request::post("/submit").body(Body::empty()).unwrap(),
        form(URLENCODED, "item=7"),
        form(URLENCODED, ""),
        form(MULTIPART, part("item", "7") + "--b--\r\n"),
        // Neither the query nor a cookie counts.
        Request::post(format!("/submit?_token={token}")).body(Body::empty()).unwrap(),
        Request::post("/submit").header("Cookie", format!("_token={token}")).body(Body::empty()).unwrap(),
    ] {
        let missing = shop.send(request).await;
        assert_eq!((missing.status.as_u16(), &*missing.problem()), (400, "token-missing"));
    }
    for request in [
        form(URLENCODED, format!("_token={token}&_token={token}")),
        form(MULTIPART, part("_token", &token) + &part("_token", &token) + "--b--\r\n"),
        form(MULTIPART, part("_token", &token)),
    ] {
        assert_eq!(shop.send(request).await.problem(), "token-invalid");
    }
    assert_eq!(shop.runs.get(), 0);
    assert_eq!(shop.submit(&token, None, "").await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn header_and_field_can_have_other_names() {
    let shop = shop(|layer| layer.header("X-Form").field("once"));
    let (one, two) = (shop.token(None).await, shop.token(None).await);
    let request = Request::post("/submit").header("X-Form", &one).body(Body::empty()).unwrap();
    assert_eq!(shop.send(request).await.status, 201);
    assert_eq!(shop.send(form(URLENCODED, format!("once={two}"))).await.status, 201);
    assert_eq!(shop.send(form(URLENCODED, format!("_token={two}"))).await.problem(), "token-missing");
}

/// Answers with the bytes that it got.
fn echo(adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> (Tokens, Router) {
    let tokens = tokens(Arc::new(MemoryStore::new()), Kind::Stored);
    let layer = adjust(tokens.layer("upload"));
    let app = Router::new().route("/submit", post(|body: Bytes| async { (StatusCode::CREATED, body) }).layer(layer));
    (tokens, app)
}

#[tokio::test]
async fn the_body_reaches_the_handler_byte_for_byte() {
    for adjust in [
        (|layer| layer) as fn(TokenLayer) -> TokenLayer,
        |layer| layer.on_duplicate(OnDuplicate::Replay),
        |layer| layer.multipart_prefix(200),
        |layer| layer.multipart_prefix(64 * 1024),
        |layer| layer.multipart_prefix(64 * 1024).on_duplicate(OnDuplicate::Replay),
    ] {
        let (tokens, app) = echo(adjust);
        for chunk in [1, 7, 1000, 100_000] {
            let token = tokens.issue("upload", None).await.unwrap();
            let file = part("file", &"0123456789\r\n--c--".repeat(300));
            let body = format!("preamble\r\n{}{file}--b--\r\nepilogue", part("_token", token.as_str()));
            let chunks: Vec<_> =
                body.as_bytes().chunks(chunk).map(|chunk| Ok::<_, io::Error>(chunk.to_vec())).collect();
            let request = form(MULTIPART, Body::from_stream(futures_util::stream::iter(chunks)));
            let seen = see(app.clone().oneshot(request).await.unwrap()).await;
            assert_eq!((seen.status.as_u16(), seen.body == body), (201, true), "{chunk}");
        }
    }
}

/// The handler has the beginning while the client still sends, far beyond what the layer would hold.
#[tokio::test(start_paused = true)]
async fn uploads_stream() {
    let tokens = tokens(Arc::new(MemoryStore::new()), Kind::Stored);
    let layer = tokens.layer("upload").request_limit(4).multipart_prefix(1000);
    let handler = |body: Body| async move {
        let mut body = body;
        let mut read = Vec::new();
        // As far as the token at least; what comes then depends on the client, who waits for this answer.
        while read.len() < 100 {
            read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        (StatusCode::CREATED, read)
    };
    let app: Router = Router::new().route("/submit", post(handler).layer(layer));
    for by_header in [true, false] {
        let token = tokens.issue("upload", None).await.unwrap();
        let beginning = part("_token", token.as_str()) + "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";
        let (mut sender, body) = Channel::<Bytes, io::Error>::new(1);
        let request = |body| {
            let mut request = form(MULTIPART, Body::new(body));
            if by_header {
                request.headers_mut().insert("X-Submit-Token", token.as_str().parse().unwrap());
            }
            request
        };
        let (answer, sent) =
            tokio::join!(app.clone().oneshot(request(body)), sender.send_data(beginning.clone().into()));
        sent.unwrap();
        assert_eq!(see(answer.unwrap()).await, Seen::first(201, &beginning));
        // The second one is refused although it is much longer than what is held.
        let (mut sender, body) = Channel::<Bytes, io::Error>::new(1);
        let (answer, ()) = tokio::join!(app.clone().oneshot(request(body)), async {
            sender.send_data(beginning.clone().into()).await.unwrap();
            for _ in 0..1000 {
                sender.send_data("x".repeat(1000).into()).await.unwrap();
            }
            drop(sender);
        });
        assert_eq!(see(answer.unwrap()).await.problem(), "token-used");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_or_stands_still_behind_its_token_gives_it_back() {
    let tokens = tokens(Arc::new(MemoryStore::new()), Kind::Stored).lifetime(Duration::from_secs(3600));
    // It answers 2xx whatever it could read.
    let handler = |body: Body| async { (StatusCode::CREATED, format!("{}", body.collect().await.is_ok())) };
    let layer = tokens.layer("upload").multipart_prefix(1000);
    let app: Router = Router::new().route("/submit", post(handler).layer(layer));
    for (by_header, breaks) in [(true, true), (true, false), (false, true), (false, false)] {
        let token = tokens.issue("upload", None).await.unwrap();
        let send = async |rest: &'static str| {
            let beginning = if by_header { String::new() } else { part("_token", token.as_str()) };
            let beginning = stream::iter([Ok(Bytes::from(beginning + &part("file", "0123")))]);
            let rest = match rest {
                "breaks" => stream::once(async {
                    sleep(Duration::from_secs(1)).await;
                    Err(io::Error::other("gone"))
                })
                .boxed(),
                "stalls" => stream::pending().boxed(),
                rest => stream::iter([Ok(Bytes::from(rest))]).boxed(),
            };
            let mut request = form(MULTIPART, Body::from_stream(beginning.chain(rest)));
            if by_header {
                request.headers_mut().insert("X-Submit-Token", token.as_str().parse().unwrap());
            }
            see(app.clone().oneshot(request).await.unwrap()).await
        };
        let failed = send(if breaks { "breaks" } else { "stalls" }).await;
        assert_eq!(failed, Seen::first(201, "false"), "{by_header} {breaks}");
        assert_eq!(send("--b--\r\n").await, Seen::first(201, "true"), "{by_header} {breaks}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_behind_the_prefix_is_missing() {
    let shop = shop(|layer| layer.multipart_prefix(1000));
    let token = shop.token(None).await;
    let send = async |before: usize, chunk: usize| {
        let body = part("item", &"x".repeat(before)) + &part("_token", &token) + "--b--\r\n";
        let chunks: Vec<_> = body.as_bytes().chunks(chunk).map(|chunk| Ok::<_, io::Error>(chunk.to_vec())).collect();
        shop.send(form(MULTIPART, Body::from_stream(futures_util::stream::iter(chunks)))).await
    };
    assert_eq!(send(1000, 10).await.problem(), "token-missing");
    assert_eq!(send(900, 10).await.problem(), "token-missing");
    let torn = form(MULTIPART, part("_token", &token));
    assert_eq!(shop.send(torn).await.problem(), "token-missing");
    let broken: [Result<Vec<u8>, _>; 2] = [Ok(part("item", "7").into()), Err(io::Error::other("gone"))];
    let broken = form(MULTIPART, Body::from_stream(futures_util::stream::iter(broken)));
    assert_eq!(shop.send(broken).await.problem(), "body-incomplete");
    assert_eq!(shop.runs.get(), 0);
    assert_eq!(send(700, 10).await.status, 201);
}

/// A client that stops before its token is waited for as long as one may stand still, and no longer.
#[tokio::test(start_paused = true)]
async fn a_prefix_that_stands_still_is_given_up() {
    let shop = shop(|layer| layer.multipart_prefix(1000));
    let (mut sender, body) = Channel::<Bytes, io::Error>::new(1);
    let began = tokio::time::Instant::now();
    let (refused, ()) = tokio::join!(shop.send(form(MULTIPART, Body::new(body))), async {
        sender.send_data(part("item", "7").into()).await.unwrap();
    });
    assert_eq!((&*refused.problem(), began.elapsed().as_secs()), ("body-timeout", 60));
    assert_eq!(shop.runs.get(), 0);
}

#[test]
#[should_panic(expected = "OPTIONS cannot be protected")]
fn methods_whose_answers_cannot_be_replayed() {
    let _ = Tokens::new(MemoryStore::new()).layer("upload").methods([Method::PUT, Method::OPTIONS]);
}
