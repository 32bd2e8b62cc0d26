//! The request body that a layer keeps beside the record, on whatever store.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer,
    store::{Filter, RecordKey, State, StoreAdmin},
};

/// It is there while the request runs, after it has settled, and with the body of the next try after a release; and it
/// is not there unless it was asked for.
pub(crate) async fn the_request_is_kept_where_asked_for<S: StoreAdmin + Clone>(store: S) {
    let layer = IdempotencyLayer::new(store.clone()).route("orders");
    let every_byte: Bytes = (0..=u8::MAX).collect();
    for (layer, name, kept) in [(layer.clone().keep_request(), "kept", true), (layer, "not", false)] {
        let key = RecordKey::new("orders", None, name).unwrap();
        let note = if kept { every_byte.clone() } else { Bytes::new() };
        let statuses = [(StatusCode::BAD_GATEWAY, State::Released), (StatusCode::CREATED, State::Settled)];
        for (status, state) in statuses {
            let handler = service_fn({
                let (store, key, note) = (store.clone(), key.clone(), note.clone());
                move |_| {
                    let (store, key, note) = (store.clone(), key.clone(), note.clone());
                    async move {
                        let record = store.inspect(&key).await.unwrap().unwrap();
                        assert_eq!((record.state, record.note), (State::Running, note));
                        let mut answer = Response::new(Body::from("ordered"));
                        *answer.status_mut() = status;
                        Ok::<_, Infallible>(answer)
                    }
                }
            });
            let request = Request::post("/orders").header("Idempotency-Key", name);
            let request = request.body(Body::from(every_byte.clone())).unwrap();
            let answer = layer.layer(handler).oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status);
            let record = store.inspect(&key).await.unwrap().unwrap();
            assert_eq!((record.state, &record.note), (state, &note));
            let page = store.list(Filter::State(state), None, 10).await.unwrap();
            let entry = page.entries.iter().find(|entry| entry.key == key).unwrap();
            assert_eq!(entry.record.note, note);
        }
    }
}

/// A body that is longer than the limit is refused, and nothing of it is kept.
pub(crate) async fn a_request_past_the_limit_is_not_kept<S: StoreAdmin + Clone>(store: S) {
    let layer = IdempotencyLayer::new(store.clone()).route("limited").keep_request().request_limit(16);
    let handler = service_fn(async |_| Ok::<_, Infallible>(Response::new(Body::empty())));
    let request = Request::post("/limited").header("Idempotency-Key", "long").body(Body::from("x".repeat(17))).unwrap();
    let answer = layer.layer(handler).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(store.inspect(&RecordKey::new("limited", None, "long").unwrap()).await.unwrap().is_none());
}
