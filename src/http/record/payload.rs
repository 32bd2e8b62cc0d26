//! A payload from a response, for reconcilers and for handlers that settle in their own transaction.

use bytes::Bytes;
use http::{HeaderMap, Response};

use super::{codec, headers::HeaderPolicy, response_kind::is_partial};
use crate::{body::Collected, http::respond::Times, value::Payload};

impl Payload {
    /// Keeps `response` as the answer of the operation.
    ///
    /// What a layer leaves out by default is left out here too: cookies, challenges, CORS and connection fields. An
    /// answer that cannot be replayed (1xx, 206) becomes a tombstone.
    pub fn response(response: &Response<Bytes>) -> Self {
        Self::of(response, None)
    }

    /// Keeps `response` as the answer of the operation, with `trailers` after its body.
    ///
    /// Everything else is as with [`response`](Self::response); of the trailers the same fields are left out as of the
    /// headers. Over HTTP/1.1 a client receives only trailers that the header `Trailer` announces, and only if it says
    /// `TE: trailers`.
    pub fn response_with_trailers(response: &Response<Bytes>, trailers: HeaderMap) -> Self {
        Self::of(response, Some(Box::new(trailers)))
    }

    fn of(response: &Response<Bytes>, trailers: Option<Box<HeaderMap>>) -> Self {
        let status = response.status();
        if status.is_informational() || is_partial(status) {
            return Self::tombstone();
        }
        let body = Collected { data: response.body().clone(), trailers };
        Self::packed(codec::encode(status, response.headers(), &body, &HeaderPolicy::default(), Times::now(None), None))
    }
}

#[cfg(test)]
mod tests {
    use http::{
        StatusCode,
        header::{LOCATION, SET_COOKIE},
    };

    use super::*;

    #[test]
    fn an_answer_is_packed_as_a_layer_packs_it() {
        let response = Response::builder().status(201).header(LOCATION, "/orders/7").header(SET_COOKIE, "s=1");
        let payload = Payload::response(&response.body(Bytes::from_static(b"order 7")).unwrap());
        let kept = codec::decode(payload.into_bytes().unwrap()).unwrap();
        assert_eq!((kept.status, &kept.body[..]), (StatusCode::CREATED, &b"order 7"[..]));
        assert_eq!(kept.headers[LOCATION], "/orders/7");
        assert!(!kept.headers.contains_key(SET_COOKIE));
    }

    #[test]
    fn trailers_are_packed_with_it() {
        let response = Response::new(Bytes::from_static(b"order 7"));
        let fields = [("x-sum", "7"), ("set-cookie", "s=1")];
        let fields = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let payload = Payload::response_with_trailers(&response, HeaderMap::from_iter(fields));
        let kept = codec::decode(payload.into_bytes().unwrap()).unwrap();
        let trailers = kept.trailers.unwrap();
        assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &"7".parse().unwrap()));
    }

    #[test]
    fn what_cannot_be_replayed_is_a_tombstone() {
        for status in [101, 206] {
            let response = Response::builder().status(status).body(Bytes::new()).unwrap();
            assert_eq!(Payload::response(&response), Payload::tombstone());
        }
    }

    #[test]
    fn no_other_payload_is_an_answer() {
        for payload in [Payload::done(), Payload::failed()] {
            assert!(codec::decode(payload.into_bytes().unwrap()).is_none());
        }
    }
}
