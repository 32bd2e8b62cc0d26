//! Whose key it is, on whatever store.

use std::{convert::Infallible, future::Future};

use Answer::{ChildKey, Nothing};
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer, Keep, Operation, Policy, Secret,
    service::ResponseBody,
    store::{RecordKey, State, StoreAdmin},
};

/// What the handler does before it answers.
#[derive(Clone, Copy)]
enum Answer {
    Nothing,
    /// It derives a key for another service.
    ChildKey,
}

/// What a client receives: the status, the name of the problem if there is one, the handler's text.
#[derive(Debug, PartialEq, Eq)]
struct Received {
    status: u16,
    problem: Option<String>,
    text: String,
}

impl Received {
    fn is(&self, problem: &str) -> bool {
        self.problem.as_deref() == Some(problem)
    }
}

/// Sends a request; the handler answers with `status` and states its attempt, and its child key if it derives one.
async fn send(
    layer: &IdempotencyLayer,
    key: &str,
    user: Option<&str>,
    body: &str,
    status: u16,
    answer: Answer,
) -> Received {
    let handler = service_fn(move |request: Request<_>| async move {
        let operation = request.extensions().get::<Operation>().unwrap();
        let child = if matches!(answer, ChildKey) { operation.child_key("bank") } else { String::new() };
        let mut response = Response::new(Body::from(format!("{} {child}", operation.attempt())));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok::<_, Infallible>(response)
    });
    received(layer.layer(handler), key, user, body).await
}

async fn received<S>(service: S, key: &str, user: Option<&str>, body: &str) -> Received
where
    S: Service<Request<Body>, Response = Response<ResponseBody<Body>>, Error = Infallible>,
{
    let mut request = Request::post("/orders").header("Idempotency-Key", key);
    if let Some(user) = user {
        request = request.header("Authorization", format!("Bearer {user}"));
    }
    let response = service.oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let problem = text.split_once(r#""type":""#).and_then(|(_, rest)| rest.split('"').next()?.split_once('#'));
    Received { status, problem: problem.map(|(_, name)| name.to_owned()), text }
}

fn layer<S: StoreAdmin>(store: S) -> IdempotencyLayer {
    IdempotencyLayer::new(store).route("orders")
}

fn record_key(key: &str) -> RecordKey {
    RecordKey::new("orders", None, key).unwrap()
}

/// A request that failed leaves its key to its caller, who may correct the content, after a restart too. Nobody else learns
/// more than that it is another caller's.
async fn a_released_key_belongs_to_its_caller<S, F>(connect: impl Fn() -> F)
where
    S: StoreAdmin + Clone,
    F: Future<Output = S>,
{
    let cases = [("failed", 500), ("refused", 400), ("forbidden", 403)];
    let first = layer(connect().await);
    for (key, status) in cases {
        assert_eq!(send(&first, key, Some("ann"), "one", status, Nothing).await.status, status);
    }
    drop(first);
    let layer = layer(connect().await);
    for (key, _) in cases {
        for body in ["one", "two"] {
            for stranger in [Some("bob"), None] {
                let refused = send(&layer, key, stranger, body, 201, Nothing).await;
                assert_eq!((refused.status, refused.is("other-caller")), (422, true), "{refused:?}");
            }
        }
        let retry = send(&layer, key, Some("ann"), "corrected", 201, Nothing).await;
        assert_eq!((retry.status, &*retry.text), (201, "2 "));
        let other_content = send(&layer, key, Some("ann"), "one", 201, Nothing).await;
        assert!(other_content.is("key-reused"), "{other_content:?}");
        // The caller is compared before the content in a settled record too.
        for body in ["corrected", "one"] {
            assert!(send(&layer, key, Some("bob"), body, 201, Nothing).await.is("other-caller"));
        }
    }
}

/// A request without credentials leaves its key to anybody, as the next attempt of one operation, after a restart too.
async fn a_released_key_of_nobody_is_free_for_anybody<S, F>(connect: impl Fn() -> F)
where
    S: StoreAdmin + Clone,
    F: Future<Output = S>,
{
    let first = send(&layer(connect().await), "nobodys", None, "one", 500, ChildKey).await;
    let layer = layer(connect().await);
    let next = send(&layer, "nobodys", Some("ann"), "one", 500, ChildKey).await;
    assert_eq!(next.text, first.text.replacen('1', "2", 1));
    assert!(send(&layer, "nobodys", Some("bob"), "one", 201, Nothing).await.is("other-caller"));
    let last = send(&layer, "nobodys", Some("ann"), "one", 201, ChildKey).await;
    assert_eq!(last.text, first.text.replacen('1', "3", 1));
}

/// A child key is the same in each attempt, although the process was restarted, the content corrected, a secret set or
/// rotated; two callers with the same key have different ones.
async fn child_keys_outlive_a_restart<S, F>(connect: impl Fn() -> F)
where
    S: StoreAdmin + Clone,
    F: Future<Output = S>,
{
    let secret = |byte: u8| Secret::new([byte; 32]).unwrap();
    let both = || secret(2).accept([1; 32]).unwrap();
    let child = |received: Received| received.text.split_once(' ').unwrap().1.to_owned();

    let first = layer(connect().await);
    let plain = child(send(&first, "plain", Some("ann"), "one", 500, ChildKey).await);
    let sealed = child(send(&first.clone().secret(secret(1)), "sealed", Some("ann"), "one", 500, ChildKey).await);
    let bobs = child(send(&first, "bobs", Some("bob"), "one", 500, ChildKey).await);
    assert_eq!((plain.len(), sealed.len()), (64, 64));
    assert!(plain != sealed && plain != bobs);
    drop(first);

    let restarted = layer(connect().await).secret(both());
    for (key, before) in [("plain", &plain), ("sealed", &sealed)] {
        let again = send(&restarted, key, Some("ann"), "corrected", 500, ChildKey).await;
        assert_eq!(again.text, format!("2 {before}"), "{key}");
    }
    let rotated = layer(connect().await).secret(both());
    for (key, before) in [("plain", &plain), ("sealed", &sealed)] {
        let again = send(&rotated, key, Some("ann"), "one", 201, ChildKey).await;
        assert_eq!(again.text, format!("3 {before}"), "{key}");
    }
    // Without the secret that the record began with, nobody can tell whose it is: no run, and no answer either.
    let without = layer(connect().await).secret(secret(2));
    let refused = send(&without, "sealed", Some("ann"), "one", 201, Nothing).await;
    assert_eq!((refused.status, refused.is("record-incompatible")), (409, true), "{refused:?}");
    assert_eq!(send(&without, "plain", Some("ann"), "one", 201, Nothing).await.text, format!("3 {plain}"));
}

/// An answer that says that nothing began leaves no trace: not in the count, not in the owner's way.
async fn answers_that_say_that_nothing_began_undo_the_attempt<S: StoreAdmin + Clone>(store: S) {
    let layer = layer(store.clone());
    for status in [401, 407, 429] {
        let key = format!("undone-{status}");
        assert_eq!(send(&layer, &key, None, "one", status, Nothing).await.status, status);
        assert!(store.inspect(&record_key(&key)).await.unwrap().is_none());
        assert_eq!(send(&layer, &key, Some("ann"), "two", 500, Nothing).await.text, "1 ");
        assert_eq!(send(&layer, &key, Some("ann"), "three", status, Nothing).await.text, "2 ");
        let record = store.inspect(&record_key(&key)).await.unwrap().unwrap();
        assert_eq!((record.state, record.attempt), (State::Released, 1));
        assert!(send(&layer, &key, Some("bob"), "three", 201, Nothing).await.is("other-caller"));
        assert_eq!(send(&layer, &key, Some("ann"), "four", 201, Nothing).await.text, "2 ");
    }
}

/// The caller that an undone attempt brought along is gone with it.
async fn an_undone_attempt_takes_its_caller_along<S: StoreAdmin + Clone>(store: S) {
    let layer = layer(store);
    assert_eq!(send(&layer, "passing", None, "one", 500, Nothing).await.text, "1 ");
    assert_eq!(send(&layer, "passing", Some("bob"), "one", 429, Nothing).await.text, "2 ");
    assert_eq!(send(&layer, "passing", Some("ann"), "one", 201, Nothing).await.text, "2 ");
}

/// Once another service may know of the operation, an attempt counts.
async fn an_attempt_that_began_is_released_and_not_undone<S: StoreAdmin + Clone>(store: S) {
    let layer = layer(store.clone());
    assert_eq!(send(&layer, "began", Some("ann"), "one", 429, ChildKey).await.status, 429);
    let record = store.inspect(&record_key("began")).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempt), (State::Released, 1));
}

/// A policy that keeps everything keeps these answers, unless they ask somebody without credentials to prove who it is.
async fn what_keeps_everything_keeps_refusals<S: StoreAdmin + Clone>(store: S) {
    let everything = layer(store.clone()).keep(Keep::EVERYTHING);
    let at_most_once = layer(store).policy(Policy::at_most_once());
    for (layer, name) in [(everything, "kept"), (at_most_once, "once")] {
        for status in [401, 407, 429] {
            let key = format!("{name}-{status}");
            assert_eq!(send(&layer, &key, Some("ann"), "one", status, Nothing).await.status, status);
            assert_eq!(send(&layer, &key, Some("ann"), "one", 201, Nothing).await.status, status);
            let key = format!("{name}-{status}-nobodys");
            assert_eq!(send(&layer, &key, None, "one", status, Nothing).await.status, status);
            let next = send(&layer, &key, Some("ann"), "one", 201, Nothing).await;
            assert_eq!(next.status, if status == 429 { 422 } else { 201 }, "{key}: {next:?}");
            let unscoped = layer.clone().unscoped();
            let key = format!("{name}-{status}-unscoped");
            assert_eq!(send(&unscoped, &key, None, "one", status, Nothing).await.status, status);
            assert_eq!(send(&unscoped, &key, Some("ann"), "one", 201, Nothing).await.status, status);
        }
    }
}

/// All of them, on a store that `connect` connects to anew each time, as a process does that was restarted. The keys are
/// fixed: it takes a namespace, or a database, of its own.
pub(crate) async fn whose_key_it_is<S, F>(connect: impl Fn() -> F)
where
    S: StoreAdmin + Clone,
    F: Future<Output = S>,
{
    a_released_key_belongs_to_its_caller(&connect).await;
    a_released_key_of_nobody_is_free_for_anybody(&connect).await;
    child_keys_outlive_a_restart(&connect).await;
    answers_that_say_that_nothing_began_undo_the_attempt(connect().await).await;
    an_undone_attempt_takes_its_caller_along(connect().await).await;
    an_attempt_that_began_is_released_and_not_undone(connect().await).await;
    what_keeps_everything_keeps_refusals(connect().await).await;
}
