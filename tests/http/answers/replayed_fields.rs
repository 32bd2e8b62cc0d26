//! Which fields of an answer come back.

use axum::{
    http::{HeaderName, header},
    response::IntoResponse,
};
use tower_idempotency::IdempotencyLayer;

use crate::{
    answers::fixture::{Fixture, Whole, as_it_is},
    common::Counter,
    common::frames::{Frames, fields},
};

/// Those that belong to one message or one exchange.
const LEFT_OUT: &[(&str, &str)] = &[
    ("connection", "keep-alive, X-Hop"),
    ("connection", " x-other-hop ,, close"),
    ("x-hop", "1"),
    ("x-other-hop", "1"),
    ("keep-alive", "timeout=5"),
    ("proxy-connection", "keep-alive"),
    ("te", "trailers"),
    ("transfer-encoding", "chunked"),
    ("upgrade", "h2c"),
    ("content-length", "4"),
    ("date", "Tue, 15 Nov 1994 08:12:31 GMT"),
    ("age", "7"),
    ("set-cookie", "a=1"),
    ("set-cookie", "b=2"),
    ("www-authenticate", "Basic"),
    ("proxy-authenticate", "Basic"),
    ("authentication-info", "x=1"),
    ("proxy-authentication-info", "x=1"),
    ("access-control-allow-origin", "https://ann.example"),
    ("access-control-allow-credentials", "true"),
    ("access-control-expose-headers", "etag"),
    ("access-control-whatever-comes-next", "1"),
    ("x-auth-token", "1"),
    ("x-csrf-token", "1"),
    ("x-xsrf-token", "1"),
    ("x-subject-token", "1"),
    ("clear-site-data", "\"cookies\""),
];

const KEPT: &[(&str, &str)] = &[
    ("content-type", "text/plain"),
    ("content-encoding", "identity"),
    ("cache-control", "no-store"),
    ("vary", "origin"),
    ("link", "<a>"),
    ("link", "<b>"),
    ("retry-after", "1"),
    ("trailer", "x-sum"),
    ("x-hop-count", "1"),
    ("x-date", "1"),
];

#[tokio::test(start_paused = true)]
async fn some_fields_are_never_replayed() {
    let all: Vec<_> = KEPT.iter().chain(LEFT_OUT).copied().collect();
    let fixture = Fixture::new(as_it_is, move |_| (fields(&all), "body"));
    let first = Whole::of(fixture.ask().await).await;
    for (name, _) in KEPT.iter().chain(LEFT_OUT) {
        assert!(first.has(name), "the first one's client gets {name}");
    }
    let mut replay = Whole::of(fixture.ask().await).await;
    assert!(replay.unmark());
    let kept: Vec<_> = KEPT.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    assert_eq!(replay.fields, kept);
    assert_eq!(replay.length, Some(4));
}

#[tokio::test(start_paused = true)]
async fn the_same_fields_are_left_out_of_the_trailers() {
    let sum = ("x-sum", "4");
    let all: Vec<_> = LEFT_OUT.iter().copied().chain([("x-cost", "7"), sum]).collect();
    let leave_out = |layer: IdempotencyLayer| layer.exclude_header(HeaderName::from_static("x-cost"));
    let sent = all.clone();
    let fixture = Fixture::new(leave_out, move |_| Frames::of(["body"]).trailers(&sent).boxed().into_response());
    let first = Whole::of(fixture.ask().await).await;
    assert_eq!(first.trailers.unwrap(), fields(&all), "the first one's client gets all of them");
    let replay = Whole::of(fixture.ask().await).await;
    assert_eq!(replay.trailers.unwrap(), fields(&[sum]));
}

#[tokio::test(start_paused = true)]
async fn the_layer_includes_and_excludes_fields() {
    type Adjust = fn(IdempotencyLayer) -> IdempotencyLayer;
    let cases: [(&str, Adjust, bool); 9] = [
        ("set-cookie", |layer| layer.include_header(header::SET_COOKIE), true),
        ("www-authenticate", |layer| layer.include_header(header::WWW_AUTHENTICATE), true),
        ("access-control-allow-origin", |layer| layer.include_header(header::ACCESS_CONTROL_ALLOW_ORIGIN), true),
        ("date", |layer| layer.include_header(header::DATE), false),
        ("content-length", |layer| layer.include_header(header::CONTENT_LENGTH), false),
        ("x-hop", |layer| layer.include_header(HeaderName::from_static("x-hop")), false),
        ("vary", |layer| layer.exclude_header(header::VARY), false),
        ("x-date", |layer| layer.exclude_header(HeaderName::from_static("x-hop-count")), true),
        ("set-cookie", |layer| layer.include_header(header::SET_COOKIE).exclude_header(header::SET_COOKIE), false),
    ];
    for (name, adjust, kept) in cases {
        let all: Vec<_> = KEPT.iter().chain(LEFT_OUT).copied().collect();
        let fixture = Fixture::new(adjust, move |_| (fields(&all), "body"));
        assert!(Whole::of(fixture.ask().await).await.has(name));
        assert_eq!(Whole::of(fixture.ask().await).await.has(name), kept, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_cookie_is_a_line_of_its_own() {
    let cookies = [("set-cookie", "a=1; Path=/, or not"), ("set-cookie", "b=2")];
    let fixture =
        Fixture::new(|layer| layer.include_header(header::SET_COOKIE), move |_| fields(&cookies).into_response());
    let first = Whole::of(fixture.ask().await).await;
    let mut replay = Whole::of(fixture.ask().await).await;
    assert!(replay.unmark() && replay.fields == first.fields, "{replay:?}");
}

#[tokio::test(start_paused = true)]
async fn the_mark_has_the_name_that_it_was_given() {
    let runs = Counter::default();
    let fixture = Fixture::new(
        |layer| layer.replay_header(HeaderName::from_static("x-again")),
        // A handler that asks a service like this one may pass its mark on.
        move |_| [("x-again", format!("{}", runs.next())), ("idempotent-replayed", "theirs".to_owned())],
    );
    let marks = |whole: &Whole| -> Vec<_> {
        let values = whole.fields.iter().filter(|(name, _)| name == "x-again" || name == "idempotent-replayed");
        values.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value))).collect()
    };
    // A first answer has neither the replay header of this layer nor the usual one.
    assert_eq!(marks(&Whole::of(fixture.ask().await).await), [""; 0]);
    assert_eq!(marks(&Whole::of(fixture.ask().await).await), ["x-again: true"]);
}
