//! What an answer holds.

use std::{convert::Infallible, io, iter, time::Duration};

use axum::{
    Json,
    body::{Body, Bytes},
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{CONTENT_TYPE, TRAILER},
    },
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::sleep;

const CHUNK: Bytes = Bytes::from_static(&[b'x'; 1024]);
const DRIP: Duration = Duration::from_millis(100);

pub(crate) enum Content {
    /// What the handler saw, in JSON.
    Report,
    /// So many bytes, with a `Content-Length`.
    Size(usize),
    /// So many chunks, with none.
    Stream(usize),
    /// A chunk every 100 milliseconds for this long.
    Drip(Duration),
    /// One chunk, then an error.
    Break,
    /// One chunk, then a trailer.
    Trailers,
    /// Nothing.
    Empty,
}

impl Content {
    pub(crate) fn into_response(self, report: Value) -> Response {
        match self {
            Self::Report => Json(report).into_response(),
            Self::Size(size) => text("x".repeat(size).into()),
            Self::Stream(chunks) => text(stream(chunks)),
            Self::Drip(time) => text(drip(time)),
            Self::Break => text(Body::from_stream(stream::iter([Ok(CHUNK), Err(io::Error::other("told to break"))]))),
            Self::Trailers => trailers(),
            Self::Empty => ().into_response(),
        }
    }
}

fn text(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn stream(chunks: usize) -> Body {
    Body::from_stream(stream::iter(iter::repeat_n(Ok::<_, Infallible>(CHUNK), chunks)))
}

fn drip(time: Duration) -> Body {
    let drops = time.as_millis() / DRIP.as_millis();
    Body::from_stream(stream::iter(0..drops).then(|_| async {
        sleep(DRIP).await;
        Ok::<_, Infallible>(CHUNK)
    }))
}

fn trailers() -> Response {
    let name = HeaderName::from_static("x-checksum");
    let trailers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("abc"))]);
    let mut response = text(Body::new(stream(1).with_trailers(async { Some(Ok(trailers)) })));
    // Hyper sends announced trailers only.
    response.headers_mut().insert(TRAILER, name.into());
    response
}
