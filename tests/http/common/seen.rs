//! A request with a key, and what came of it.
#![allow(dead_code, unreachable_pub)] // each test takes what it needs

use axum::{
    body::Body,
    http::{Request, StatusCode},
    response::Response,
};
use http_body_util::BodyExt;

pub fn post(path: &str, key: &str, body: &str) -> Request<Body> {
    Request::post(path).header("Idempotency-Key", key).body(Body::from(body.to_owned())).unwrap()
}

/// Status, whether it is a replay, and the body.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub status: StatusCode,
    pub replayed: bool,
    pub body: String,
}

impl Seen {
    pub fn first(status: u16, body: &str) -> Self {
        Self { status: StatusCode::from_u16(status).unwrap(), replayed: false, body: body.to_owned() }
    }

    pub fn replay(status: u16, body: &str) -> Self {
        Self { replayed: true, ..Self::first(status, body) }
    }

    /// The name of the problem that it is.
    pub fn problem(&self) -> String {
        let problem: serde_json::Value = serde_json::from_str(&self.body).expect("a problem document");
        assert_eq!(problem["status"], self.status.as_u16());
        let kind = problem["type"].as_str().expect("a type");
        kind.rsplit_once('#').expect("a name").1.to_owned()
    }
}

pub async fn see<B>(response: Response<B>) -> Seen
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Seen {
        status: parts.status,
        replayed: parts.headers.contains_key("idempotent-replayed"),
        body: String::from_utf8(body.to_vec()).expect("text"),
    }
}
