//! An answer comes back as it was.

use axum::{body::Body, http::Response, response::IntoResponse};

use crate::{
    answers::fixture::{Fixture, KEPT, Whole, as_it_is},
    common::frames::{Frames, fields},
};

type Lines = &'static [(&'static str, &'static str)];

struct Case {
    status: u16,
    fields: Lines,
    body: fn() -> Body,
}

const CASES: &[Case] = &[
    Case {
        status: 201,
        fields: &[
            ("x-b", "1"),
            ("content-type", "application/json; charset=utf-8"),
            ("x-a", "one"),
            ("location", "/orders/7"),
            ("x-a", "two"),
            ("etag", "\"7\""),
            ("x-a", "one"),
            ("x-empty", ""),
        ],
        body: || Body::from("{\"order\":7}"),
    },
    Case { status: 200, fields: &[], body: Body::empty },
    Case { status: 200, fields: &[], body: || Frames::of([""; 3]).boxed() },
    Case { status: 202, fields: &[("content-type", "")], body: || Frames::of(["", "a", "", "bc", "d", ""]).boxed() },
    Case { status: 204, fields: &[("etag", "\"8\"")], body: Body::empty },
    Case { status: 299, fields: &[], body: || Body::from("odd") },
    Case { status: 303, fields: &[("location", "/receipts/7?a=b")], body: Body::empty },
    Case { status: 200, fields: &[], body: || Body::from((0..=255).collect::<Vec<u8>>()) },
    Case {
        status: 200,
        fields: &[("trailer", "x-checksum, x-sum")],
        body: || Frames::of(["ab", "c"]).trailers(&[("x-checksum", "abc"), ("x-sum", "1"), ("x-sum", "2")]).boxed(),
    },
    Case { status: 200, fields: &[], body: || Frames::of([""; 0]).trailers(&[("x-only", "trailers")]).boxed() },
];

#[tokio::test(start_paused = true)]
async fn an_answer_is_replayed_as_it_was() {
    for case in CASES {
        let fixture = Fixture::new(as_it_is, |_| answer(case.status, case.fields, (case.body)()));
        let bare = Whole::of(answer(case.status, case.fields, (case.body)()).into_response()).await;
        let first = Whole::of(fixture.ask().await).await;
        assert_eq!((&first.fields, first.status), (&bare.fields, bare.status), "the first one's head is left alone");
        assert_eq!((&first.data, &first.trailers), (&bare.data, &bare.trailers));
        assert_eq!(fixture.record().await, KEPT);
        for _ in 0..2 {
            let mut replay = Whole::of(fixture.ask().await).await;
            assert!(replay.unmark(), "{replay:?}");
            assert_eq!(replay, first);
        }
        assert_eq!(fixture.runs.get(), 1);
        let told = first.trailers.is_none().then_some(first.data.len() as u64);
        assert_eq!(first.length, told, "a length is told where nothing but data comes");
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_come_back_in_fields_too() {
    let odd = |_| ([("x-odd", axum::http::HeaderValue::from_bytes(b"caf\xe9\t\xff").unwrap())], "body");
    let fixture = Fixture::new(as_it_is, odd);
    let first = Whole::of(fixture.ask().await).await;
    let mut replay = Whole::of(fixture.ask().await).await;
    assert!(replay.unmark());
    assert_eq!(replay, first);
}

#[tokio::test(start_paused = true)]
async fn many_and_long_fields_come_back() {
    let many = |_| {
        let mut response = Response::new(Body::from("body"));
        for number in 0..500 {
            response.headers_mut().append("x-many", number.into());
        }
        response.headers_mut().insert("x-long", "v".repeat(40_000).parse().unwrap());
        response
    };
    let fixture = Fixture::new(as_it_is, many);
    let first = Whole::of(fixture.ask().await).await;
    let mut replay = Whole::of(fixture.ask().await).await;
    assert!(replay.unmark());
    assert_eq!(replay, first);
}

fn answer(status: u16, lines: Lines, body: Body) -> Response<Body> {
    let mut response = Response::builder().status(status).body(body).unwrap();
    *response.headers_mut() = fields(lines);
    response
}
