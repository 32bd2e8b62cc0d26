//! Answers that were kept.

use std::{convert::Infallible, future::ready, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode,
    header::{AUTHORIZATION, DATE, WWW_AUTHENTICATE},
};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer, Keep, MemoryStore, fingerprint,
    service::RequestBody,
    store::{Claim, Claimed, RecordKey, Settlement, Store},
};

use crate::rules::{
    choices::Choices,
    probe::{block_on, problem},
};

const DAY: Duration = Duration::from_secs(86_400);

/// Whatever a store hands out for an answer is replayed or refused.
pub fn any_payload(payload: &[u8]) {
    let response = block_on(async {
        let store = MemoryStore::new();
        let key = RecordKey::new("/", None, "k").expect("a key");
        let claim = Claim::new(DAY, DAY);
        assert!(matches!(store.claim(&key, &claim).await, Ok(Claimed::Granted(_))));
        let settlement = Settlement::new(claim.claimant, Some(Bytes::copy_from_slice(payload)), DAY);
        store.settle(&key, &settlement).await.expect("the store works");
        let layer = IdempotencyLayer::new(store).fingerprint(fingerprint::off());
        let service = layer.layer(service_fn(never));
        collect(service.oneshot(request()).await.expect("an answer")).await
    });
    let (parts, body, trailers) = response;
    if parts.headers.get("idempotent-replayed").is_some_and(|marker| marker == "true") {
        assert_eq!(parts.status.as_u16().to_be_bytes()[..], payload[1..3]);
        assert!(payload.ends_with(&body));
        assert!(trailers.is_none_or(|trailers| !trailers.is_empty()));
    } else {
        let status = parts.status.as_u16();
        let expected = match payload {
            [0x81, 1] => (500, "handler-failed"),
            [0x82, b'T', b'I', b'S', ..] => (409, "answer-unreadable"),
            _ => (409, "response-not-retained"),
        };
        assert_eq!((status, &*problem(&Response::from_parts(parts, body))), expected);
    }
}

async fn never(_: Request<RequestBody<Full<Bytes>>>) -> Result<Response<Full<Bytes>>, Infallible> {
    panic!("it has ended before")
}

const NAMES: &[&str] =
    &["content-type", "location", "x-a", "etag", "date", "set-cookie", "connection", "x-hop", "www-authenticate"];

/// An answer of a handler's.
#[derive(Clone)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    trailers: HeaderMap,
    body: Bytes,
    /// How much of the body comes at a time.
    chunk: usize,
}

/// A duplicate gets what the first one got, status, headers, body and trailers, unless it was too long to keep.
pub fn comes_back(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let status = 200 + u16::try_from(choices.below(256)).expect("a byte") * 3;
    let answer = Answer {
        status: status.try_into().expect("a status"),
        headers: fields(&mut choices, NAMES),
        trailers: fields(&mut choices, &["x-a", "x-checksum", "date"]),
        chunk: choices.one_of(&[255, 1, 2, 100]),
        body: Bytes::copy_from_slice(choices.bytes(255)),
    };
    let limit = choices.one_of(&[0, 1, 2, 255]).min(answer.body.len() + choices.below(2));
    let given = answer.clone();
    let handler = service_fn(move |_: Request<RequestBody<Full<Bytes>>>| ready(Ok::<_, Infallible>(given.response())));
    let layer = IdempotencyLayer::new(MemoryStore::new()).keep(Keep::EVERYTHING).response_limit(limit);
    let service = layer.layer(handler);
    // A 401 or 407 is not kept for a caller without credentials.
    let ask = || {
        let mut request = request();
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer ann"));
        block_on(async { collect(service.clone().oneshot(request).await.expect("an answer")).await })
    };
    let (first, body, trailers) = ask();
    assert_eq!((first.status, &first.headers), (answer.status, &answer.headers));
    assert_eq!((&body, trailers.unwrap_or_default()), (&answer.body, answer.trailers.clone()));
    let (mut second, body, trailers) = ask();
    if answer.status == StatusCode::PARTIAL_CONTENT || answer.body.len() > limit {
        return assert_eq!(problem(&Response::from_parts(second, body)), "response-not-retained");
    }
    let mut expected = kept(answer.headers);
    if answer.status == StatusCode::UNAUTHORIZED {
        // A challenge stays with its 401, unless its scheme is one that passes.
        expected.remove(WWW_AUTHENTICATE);
        second.headers.remove(WWW_AUTHENTICATE);
    }
    assert_eq!((second.status, second.headers), (answer.status, expected));
    // The rules of headers hold for trailers too.
    let mut expected = answer.trailers;
    expected.remove(DATE);
    assert_eq!((body, trailers.unwrap_or_default()), (answer.body, expected));
}

impl Answer {
    fn response(&self) -> Response<impl http_body::Body<Data = Bytes, Error = Infallible> + use<>> {
        let data: Vec<_> = self.body.chunks(self.chunk).map(|chunk| Frame::data(self.body.slice_ref(chunk))).collect();
        let trailers = (!self.trailers.is_empty()).then(|| Frame::trailers(self.trailers.clone()));
        let frames = data.into_iter().chain(trailers).map(Ok);
        let mut response = Response::new(StreamBody::new(stream::iter(frames)));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response
    }
}

/// The headers of a replay.
fn kept(mut headers: HeaderMap) -> HeaderMap {
    let listed: Vec<_> =
        headers.get_all("connection").iter().map(|value| value.as_bytes().to_ascii_lowercase()).collect();
    let listed = listed.join(&b',');
    let hops = listed.split(|byte| *byte == b',').filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    let never = ["date", "set-cookie", "connection", "www-authenticate"].map(HeaderName::from_static);
    for name in hops.chain(never) {
        headers.remove(name);
    }
    headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    headers
}

fn fields(choices: &mut Choices<'_>, names: &[&'static str]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for _ in 0..choices.below(8) {
        let name = HeaderName::from_static(choices.one_of(names));
        let hop = name == "connection" && choices.flip();
        let value = HeaderValue::from_bytes(if hop { b"close, x-hop" } else { choices.bytes(200) });
        fields.append(name, value.unwrap_or_else(|_| HeaderValue::from_static("no value")));
    }
    fields
}

fn request() -> Request<Full<Bytes>> {
    Request::post("/").header("idempotency-key", "k").body(Full::new(Bytes::new())).expect("a request")
}

async fn collect<B>(response: Response<B>) -> (http::response::Parts, Bytes, Option<HeaderMap>)
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    let (parts, body) = response.into_parts();
    let whole = body.collect().await.expect("a whole answer");
    let trailers = whole.trailers().cloned();
    (parts, whole.to_bytes(), trailers)
}
