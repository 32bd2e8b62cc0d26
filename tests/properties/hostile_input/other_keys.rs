//! Keys in the query, in the path, and from a closure.

use axum::{Router, body::Body, extract::Request, routing::post as route};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use tower::ServiceExt;
use tower_idempotency::{
    Operation,
    key::{self, KeyError},
};

use crate::{
    common::see,
    hostile_input::probe::{KEY, Outcome, block_on, cases, layer, outcome, post},
};

fn is_key(text: &str) -> bool {
    (1..=255).contains(&text.len()) && !text.chars().any(char::is_control) && !text.trim().is_empty()
}

fn by_query(query: &str) -> Option<Outcome> {
    Some(outcome(&layer().key(key::query("id")), post(&format!("/?{query}"), &[], "")?))
}

/// The key that a handler behind `/orders/{id}` sees, or the status and the problem, if it is one.
fn by_path(segment: &str) -> Option<(u16, String)> {
    let handler = |operation: Operation| async move { operation.key().to_owned() };
    let app = Router::new().route("/orders/{id}", route(handler).layer(layer().key(key::path("id"))));
    let request = Request::post(format!("/orders/{segment}")).body(Body::empty()).ok()?;
    let seen = block_on(async { see(app.oneshot(request).await.unwrap()).await });
    let text = if seen.status == 400 { seen.problem() } else { seen.body };
    Some((seen.status.as_u16(), text))
}

#[test]
fn a_target_of_any_form_is_a_route() {
    for (target, route) in
        [("*", "*"), ("http://site:80/run?a#b", "/run"), ("site:80", ""), ("//run", "//run"), ("http://site", "/")]
    {
        let Some(request) = post(target, &[(KEY, b"k")], "") else { panic!("{target} is no target") };
        let Outcome::Ran(key) = outcome(&layer(), request) else { panic!("{target} did not run") };
        assert_eq!(key.route(), route, "{target}");
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_query_has_a_key_or_is_refused(query in "((id|i%64|x|%69d|%ff)?=?([a-z+&]|%[0-9a-fA-F]{0,2}|[ -~]|é){0,9}&?){0,5}") {
        if let Some(seen) = by_query(&query) {
            prop_assert!(seen.is_right(), "{query}: {seen:?}");
        }
    }

    #[test]
    fn a_parameter_is_its_text(text in any::<String>(), other in "|[a-z]{3,9}") {
        let encoded = utf8_percent_encode(&text, NON_ALPHANUMERIC);
        let seen = by_query(&format!("idx={other}&id={encoded}&{other}")).unwrap();
        prop_assert_eq!(seen.key(), is_key(&text).then_some(text.as_str()));
        prop_assert!(seen.is_right());
    }

    #[test]
    fn a_parameter_that_is_there_twice_is_none(one in "[a-z]{0,9}", other in "[a-z]{0,9}") {
        prop_assert_eq!(by_query(&format!("id={one}&a=b&i%64={other}")), Some(Outcome::refused("key-invalid")));
    }

    #[test]
    fn any_path_has_a_key_or_is_refused(segment in "([a-z.~/?]|%[0-9a-fA-F]{0,2}|[ -~]){0,20}") {
        if let Some((status, text)) = by_path(&segment) {
            let right = match status {
                200 => is_key(&text),
                400 => text == "key-invalid",
                status => status == 404,
            };
            prop_assert!(right, "{segment}: {status} {text}");
        }
    }

    #[test]
    fn a_segment_is_its_text(text in "\\PC{1,80}|.{1,80}") {
        let (status, seen) = by_path(&utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string()).unwrap();
        let expected = if is_key(&text) { (200, text.as_str()) } else { (400, "key-invalid") };
        prop_assert_eq!((status, seen.as_str()), expected);
    }

    #[test]
    fn the_rules_hold_for_a_closure_too(text in any::<String>(), is_there in any::<bool>(), fails in any::<bool>()) {
        let found = if fails { Err(KeyError::malformed(text.clone())) } else { Ok(is_there.then(|| text.clone())) };
        let seen = outcome(&layer().key(key::from_fn(move |_| found.clone())), post("/", &[], "").unwrap());
        prop_assert!(seen.is_right(), "{seen:?}");
        prop_assert_eq!(seen.key(), (!fails && is_there && is_key(&text)).then_some(text.as_str()));
    }
}
