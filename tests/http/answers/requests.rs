//! Request bodies, from the wire to the handler.

use axum::{
    Form, Json, Router,
    body::{Body, Bytes},
    extract::{Multipart, Request},
    http::{Method, header::CONTENT_LENGTH},
    routing::post,
};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use tower_http::limit::RequestBodyLimitLayer;
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation};

use crate::{
    answers::fixture::{Fixture, as_it_is},
    common::frames::{Frames, fields},
    common::{Counter, Seen, see},
};

fn send(body: Body) -> Request {
    Request::post("/run").header("Idempotency-Key", "k").body(body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_handler_gets_the_body_byte_for_byte() {
    const SUMS: &[(&str, &str)] = &[("x-sum", "1"), ("x-sum", "2")];
    let long = (0..=255).cycle().take(70_000).collect::<Bytes>();
    let chunks: Vec<_> = long.chunks(997).map(Bytes::copy_from_slice).collect();
    let bodies = [
        (Body::empty(), Bytes::new(), false),
        (Frames::of(["", "a", "", "bc", ""]).boxed(), "abc".into(), false),
        (Frames::of(["ab"]).trailers(SUMS).boxed(), "ab".into(), true),
        (Frames::of([""; 0]).trailers(SUMS).boxed(), Bytes::new(), true),
        (Body::from(long.clone()), long.clone(), false),
        (Frames::of(chunks.clone()).boxed(), long.clone(), false),
        (Frames::of(chunks).told().boxed(), long, false),
    ];
    for (body, data, trailed) in bodies {
        let fixture = Fixture::reading(as_it_is, move |_, request| {
            let expected = data.clone();
            async move {
                assert_eq!(request.headers()[CONTENT_LENGTH], "7", "fields are left alone");
                let length = expected.len() as u64;
                // A proxy must not leave out the trailers because it knows the length.
                assert_eq!(request.body().size_hint().exact(), (!trailed).then_some(length));
                assert_eq!(request.body().size_hint().lower(), length);
                assert_eq!(request.body().is_end_stream(), length == 0 && !trailed);
                let body = request.into_body().collect().await.unwrap();
                assert_eq!(body.trailers().cloned(), trailed.then(|| fields(SUMS)));
                assert!(body.to_bytes() == expected);
            }
        });
        let mut request = send(body);
        request.headers_mut().insert(CONTENT_LENGTH, "7".parse().unwrap());
        assert_eq!(fixture.send(request).await.status(), 200);
        assert_eq!(fixture.runs.get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_refused() {
    let at_the_limit: [fn() -> Body; 3] = [
        || Body::from("12345678"),
        || Frames::of(["1234", "5678"]).boxed(),
        || Frames::of(["1234", "5678"]).trailers(&[("x-sum", "8")]).boxed(),
    ];
    let over_it: [fn() -> Body; 4] = [
        || Body::from("123456789"),
        || Frames::of(["1234", "5678", "9"]).boxed(),
        || Frames::of(["1234", "56789"]).told().boxed(),
        || Frames::of(["12345678"; 100]).boxed(),
    ];
    for body in at_the_limit {
        let fixture = Fixture::new(|layer| layer.request_limit(8), |_| ());
        assert_eq!(fixture.send(send(body())).await.status(), 200);
    }
    for body in over_it {
        let fixture = Fixture::new(|layer| layer.request_limit(8), |_| ());
        let refused = see(fixture.send(send(body())).await).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (413, "body-too-large"));
        assert_eq!((fixture.runs.get(), fixture.record().await), (0, None));
    }
}

/// As Axum has it: what Axum takes, the layer takes.
#[tokio::test(start_paused = true)]
async fn the_limit_is_two_mebibytes_unless_told_otherwise() {
    const LIMIT: usize = 2 * 1024 * 1024;
    for (length, status) in [(1_500_000, 200), (LIMIT, 200), (LIMIT + 1, 413)] {
        let fixture = Fixture::new(as_it_is, |_| ());
        let send = || send(Body::from(vec![b'x'; length]));
        assert_eq!(fixture.send(send()).await.status(), status, "{length} bytes");
        if status == 200 {
            assert_eq!(see(fixture.send(send()).await).await, Seen::replay(200, ""), "{length} bytes");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bounded_amount_of_what_is_refused_is_read() {
    const MEBIBYTE: usize = 1 << 20;
    let chunk = Bytes::from(vec![0; MEBIBYTE]);
    for (key, status) in [("k", 413), ("\"", 400)] {
        for chunks in [4, 100] {
            let pulled = Counter::default();
            let fixture = Fixture::new(as_it_is, |_| ());
            let body = Frames::of(vec![chunk.clone(); chunks]).counted_by(&pulled).boxed();
            let request = Request::post("/run").header("Idempotency-Key", key).body(body).unwrap();
            assert_eq!(fixture.send(request).await.status(), status);
            assert!((4..20).contains(&pulled.get()), "{} of {chunks}", pulled.get());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_is_not_waited_for_for_ever() {
    for (key, status) in [("k", 413), ("\"", 400)] {
        let stalling = http_body_util::StreamBody::new(Stalling(Some(vec![0; (2 << 20) + 1])));
        let fixture = Fixture::new(as_it_is, |_| ());
        let request = Request::post("/run").header("Idempotency-Key", key).body(Body::new(stalling)).unwrap();
        let start = tokio::time::Instant::now();
        assert_eq!(fixture.send(request).await.status(), status);
        assert!(start.elapsed().as_secs() <= 15);
    }
}

/// One frame, and then nothing, not even an end.
struct Stalling(Option<Vec<u8>>);

impl futures_core::Stream for Stalling {
    type Item = Result<http_body::Frame<Bytes>, std::convert::Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        match self.0.take() {
            Some(data) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(data.into())))),
            None => std::task::Poll::Pending,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_body_claims_nothing() {
    for frames in [Frames::of([""; 0]), Frames::of(["half"]), Frames::of(["12", "34"]).told()] {
        let fixture = Fixture::new(as_it_is, |_| "ran");
        let refused = see(fixture.send(send(frames.broken().boxed())).await).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (400, "body-incomplete"));
        assert_eq!((fixture.runs.get(), fixture.record().await), (0, None));
        // The retry with the whole of it is the first.
        assert_eq!(see(fixture.send(send(Body::from("whole"))).await).await, Seen::first(200, "ran"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_further_out() {
    let bodies: [fn() -> Body; 2] = [|| Frames::of(["1234", "56789"]).boxed(), || Body::from("123456789")];
    for body in bodies {
        let fixture = Fixture::new(as_it_is, |_| ());
        let app = Router::new().fallback_service(fixture.app.clone()).layer(RequestBodyLimitLayer::new(8));
        let refused = see(app.oneshot(send(body())).await.unwrap()).await;
        assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (413, "body-too-large"));
        assert_eq!((fixture.runs.get(), fixture.record().await), (0, None));
    }
}

#[tokio::test(start_paused = true)]
async fn extractors_work_as_usual() {
    async fn parts(mut multipart: Multipart) -> String {
        let mut seen = Vec::new();
        while let Some(field) = multipart.next_field().await.unwrap() {
            seen.extend([field.name().unwrap().to_owned(), field.text().await.unwrap()]);
        }
        seen.join("=")
    }
    let app = Router::new()
        .route("/json", post(|_: Operation, Json(body): Json<Value>| async move { body["a"].to_string() }))
        .route("/bytes", post(|body: Bytes| async move { body }))
        .route("/text", post(|_: Method, body: String| async move { body }))
        .route("/form", post(|Form(body): Form<Vec<(String, String)>>| async move { format!("{body:?}") }))
        .route("/parts", post(parts))
        .layer(IdempotencyLayer::new(MemoryStore::new()));
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n7\r\n--b--\r\n";
    for (path, media_type, body, status, answer) in [
        ("/json", "application/json", "{\"a\": 7}", 200, "7"),
        ("/json", "application/json", "{", 400, ""),
        ("/json", "text/plain", "{}", 415, ""),
        ("/bytes", "application/octet-stream", "\0a", 200, "\0a"),
        ("/text", "text/plain", "caf\u{e9}", 200, "caf\u{e9}"),
        ("/form", "application/x-www-form-urlencoded", "a=1&b=+", 200, "[(\"a\", \"1\"), (\"b\", \" \")]"),
        ("/parts", "multipart/form-data; boundary=b", multipart, 200, "a=7"),
    ] {
        let request = || {
            let request = Request::post(path).header("Idempotency-Key", format!("{path} {status}").replace(' ', "-"));
            request.header("Content-Type", media_type).body(Body::from(body)).unwrap()
        };
        let first = see(app.clone().oneshot(request()).await.unwrap()).await;
        assert_eq!(first.status.as_u16(), status, "{path}: {first:?}");
        if status == 200 {
            assert_eq!(first.body, answer, "{path}");
            assert_eq!(see(app.clone().oneshot(request()).await.unwrap()).await, Seen::replay(200, answer), "{path}");
        }
    }
}
