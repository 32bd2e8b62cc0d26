//! What a store gives back: the answer that was kept, or whatever else may stand there by then.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use http_body::Frame;
use http_body_util::BodyExt;
use proptest::{collection::vec, prelude::*, sample::Index};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer, Keep, MemoryStore, fingerprint,
    service::RequestBody,
    store::{Claim, Claimed, RecordKey, SealedStore, SealingKeys, Settlement, Store, StoreAdmin},
};

use crate::{
    common::frames::Frames,
    common::post,
    hostile_input::probe::{block_on, cases},
};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
struct Answer {
    status: StatusCode,
    fields: HeaderMap,
    data: Bytes,
    trailers: Option<HeaderMap>,
}

impl Answer {
    fn response(self) -> Response<Body> {
        let body = match self.trailers {
            Some(trailers) => {
                let frames = [Ok(Frame::data(self.data)), Ok(Frame::trailers(trailers))];
                Body::new(Frames::from_iter(frames))
            }
            None => Body::from(self.data),
        };
        let mut response = Response::new(body);
        (*response.status_mut(), *response.headers_mut()) = (self.status, self.fields);
        response
    }

    async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body");
        let trailers = body.trailers().cloned();
        Self { status: parts.status, fields: parts.headers, data: body.to_bytes(), trailers }
    }

    fn seen(&self) -> (StatusCode, Vec<(&HeaderName, &HeaderValue)>, &Bytes, Option<&HeaderMap>) {
        (self.status, self.fields.iter().collect(), &self.data, self.trailers.as_ref())
    }
}

/// Sends the same request once more; the handler answers with `answer`, if it runs.
async fn ask(store: &(impl Store + Clone), answer: Option<Answer>) -> Answer {
    let handler = service_fn(move |_: axum::http::Request<RequestBody<Body>>| {
        let response = answer.clone().expect("a run").response();
        async move { Ok::<_, Infallible>(response) }
    });
    let layer = IdempotencyLayer::new(store.clone()).unscoped().fingerprint(fingerprint::off()).keep(Keep::EVERYTHING);
    let request: Request = post("/run", "k", "");
    Answer::of(layer.layer(handler).oneshot(request).await.unwrap().map(Body::new)).await
}

fn key() -> RecordKey {
    RecordKey::new("/run", None, "k").unwrap()
}

/// Returns what a duplicate receives if the store has `payload`.
fn replay_of(payload: Vec<u8>) -> Answer {
    block_on(async { ask(&store_of(payload).await, None).await })
}

/// Returns a store that has `payload`.
async fn store_of(payload: Vec<u8>) -> MemoryStore {
    let store = MemoryStore::new();
    let claim = Claim::new(HOUR, HOUR);
    assert!(matches!(store.claim(&key(), &claim).await, Ok(Claimed::Granted(_))));
    store.settle(&key(), &Settlement::new(claim.claimant, Some(payload.into()), HOUR)).await.unwrap();
    store
}

fn sealed(store: MemoryStore) -> SealedStore<MemoryStore> {
    SealedStore::new(store, SealingKeys::new([1; 32]).unwrap())
}

fn is_unreadable(answer: &Answer) -> bool {
    answer.status == 409 && String::from_utf8_lossy(&answer.data).contains("#answer-unreadable\"")
}

/// Not retained, or an answer that a server can send.
fn is_sane(answer: &Answer) -> bool {
    if answer.status == 409 && answer.fields.get(header::CACHE_CONTROL).is_some_and(|value| value == "no-store") {
        return is_unreadable(answer) || String::from_utf8_lossy(&answer.data).contains("#response-not-retained\"");
    }
    let of_the_message =
        [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::TE, header::CONTENT_LENGTH];
    answer.fields["idempotent-replayed"] == "true"
        && !answer.status.is_informational()
        && !of_the_message.iter().any(|name| answer.fields.contains_key(name))
}

fn fields() -> impl Strategy<Value = HeaderMap> {
    let value = vec(prop_oneof![Just(b'\t'), 0x20..0x7f_u8, 0x80..=0xff_u8], 0..40);
    vec(("x-[a-f0-9_]{1,2}|etag|location|link|vary|content-type", value), 0..12).prop_map(|lines| {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_bytes(&value).unwrap());
        }
        // An event stream would not be kept.
        fields.remove("content-type").map(|_| fields.insert("content-type", HeaderValue::from_static("a/b")));
        fields
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let status = (200..1000_u16).prop_filter("kept", |status| *status != 206);
    let trailers = prop::option::of(fields().prop_filter("any", |fields| !fields.is_empty()));
    (status, fields(), vec(any::<u8>(), 0..300), trailers).prop_map(|(status, fields, data, trailers)| Answer {
        status: StatusCode::from_u16(status).unwrap(),
        fields,
        data: data.into(),
        trailers,
    })
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_replay_is_the_first_answer(answer in answer()) {
        block_on(async {
            let store = MemoryStore::new();
            let first = ask(&store, Some(answer.clone())).await;
            prop_assert_eq!(first.seen(), answer.seen());
            let mut replay = ask(&store, None).await;
            prop_assert_eq!(replay.fields.remove("idempotent-replayed"), Some(HeaderValue::from_static("true")));
            prop_assert_eq!(&replay.fields, &first.fields);
            prop_assert_eq!((replay.status, replay.data, replay.trailers), (first.status, first.data, first.trailers));
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_bytes_are_sane(payload in vec(any::<u8>(), 0..200), known in any::<bool>(), small in any::<bool>()) {
        let mut payload: Vec<u8> = payload.iter().map(|byte| if small { byte % 8 } else { *byte }).collect();
        if known {
            payload.splice(0..0, [1, 0, 200]);
        }
        let answer = replay_of(payload);
        prop_assert!(is_sane(&answer), "{answer:?}");
    }

    #[test]
    fn what_was_kept_and_has_changed_is_sane(answer in answer(), at in any::<Index>(), byte in any::<u8>(), how in 0..4) {
        let kept = block_on(async {
            let store = MemoryStore::new();
            ask(&store, Some(answer)).await;
            store.inspect(&key()).await.unwrap().unwrap().payload.unwrap().to_vec()
        });
        let mut changed = kept.clone();
        let at = at.index(kept.len());
        match how {
            0 => changed[at] = byte,
            1 => changed.truncate(at),
            2 => changed.insert(at, byte),
            _ => drop(changed.remove(at)),
        }
        let answer = replay_of(changed);
        prop_assert!(is_sane(&answer), "{answer:?}");
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn nothing_opens_that_was_not_sealed(mut payload in vec(any::<u8>(), 0..200), known in any::<bool>()) {
        if known {
            payload.splice(0..0, *b"\x82TIS\x01");
        }
        let answer = block_on(async { ask(&sealed(store_of(payload).await), None).await });
        prop_assert!(is_unreadable(&answer), "{answer:?}");
    }

    #[test]
    fn what_was_sealed_opens_unless_it_has_changed(answer in answer(), at in any::<Index>(), byte in any::<u8>()) {
        let (kept, replay) = block_on(async {
            let inner = MemoryStore::new();
            let first = ask(&sealed(inner.clone()), Some(answer)).await;
            let replay = ask(&sealed(inner.clone()), None).await;
            assert_eq!((replay.status, &replay.data, &replay.trailers), (first.status, &first.data, &first.trailers));
            (inner.inspect(&key()).await.unwrap().unwrap().payload.unwrap().to_vec(), replay)
        });
        let mut changed = kept.clone();
        changed[at.index(kept.len())] = byte;
        let again = block_on(async { ask(&sealed(store_of(changed.clone()).await), None).await });
        prop_assert_eq!(is_unreadable(&again), changed != kept, "{:?}", again);
        prop_assert!(changed != kept || again.seen() == replay.seen());
    }
}

/// A status, and the fields behind it.
fn payload(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    let mut payload = vec![1];
    payload.extend(status.to_be_bytes());
    payload.push(u8::try_from(fields.len()).unwrap());
    for part in fields.iter().flat_map(|(name, value)| [name, value]) {
        payload.push(length(part));
        payload.extend(part.bytes());
    }
    payload.push(0);
    payload.extend(b"body");
    payload
}

#[test]
fn what_no_layer_ever_keeps_is_not_sent() {
    let good = replay_of(payload(200, &[("x-a", "1")]));
    assert_eq!((good.status.as_u16(), &good.fields["x-a"], &good.data[..]), (200, &"1".parse().unwrap(), &b"body"[..]));
    for (status, fields) in [
        (100, &[][..]),
        (101, &[("upgrade", "h2c")]),
        (103, &[]),
        (200, &[("content-length", "400")]),
        (200, &[("transfer-encoding", "chunked")]),
        (200, &[("connection", "close")]),
        (200, &[("X-Upper", "1"), ("Content-Length", "1")]),
        (99, &[]),
        (1000, &[]),
    ] {
        let answer = replay_of(payload(status, fields));
        assert_eq!(answer.status, 409, "{status} {fields:?}");
        assert!(is_sane(&answer), "{answer:?}");
    }
}
