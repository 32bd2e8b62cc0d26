//! How much memory a body may take while its key and its fingerprint are read.

use axum::{
    Router,
    body::Body,
    http::{Request, header::CONTENT_TYPE},
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, MemoryStore, fingerprint, key};

const URLENCODED: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
const MIB: usize = 1024 * 1024;

/// The status, and the most memory that was in use at once, beside the body.
fn peak(adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer, content_type: &str, body: String) -> (u16, usize) {
    let layer = adjust(IdempotencyLayer::new(MemoryStore::new()).unscoped().request_limit(4 * MIB));
    let app = Router::new().route("/", post(async || "")).layer(layer);
    let request = Request::post("/").header(CONTENT_TYPE, content_type).header("Idempotency-Key", "k");
    let request = request.body(Body::from(body)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut status = 0;
    let used = allocation_counter::measure(|| {
        status = runtime.block_on(app.oneshot(request)).unwrap().status().as_u16();
    });
    (status, usize::try_from(used.bytes_max).unwrap())
}

#[track_caller]
fn assert_peak((status, used): (u16, usize), expected: u16, most: usize) {
    assert_eq!(status, expected);
    assert!(used <= most, "{used} bytes");
}

#[test]
fn a_form_of_nothing_but_fields_is_refused() {
    let body = || "a&".repeat(MIB / 2);
    assert_peak(peak(|layer| layer.key(key::form("id")), URLENCODED, body()), 400, 64 * 1024);
    assert_peak(peak(|layer| layer.fingerprint(fingerprint::form()), URLENCODED, body()), 400, 64 * 1024);
}

#[test]
fn a_form_takes_about_its_own_size() {
    let body = || format!("field=%41{}&", "x".repeat(1000)).repeat(1000);
    assert_peak(peak(|layer| layer.fingerprint(fingerprint::form()), URLENCODED, body()), 200, 2 * MIB);
}

#[test]
fn json_of_nothing_but_values_is_refused() {
    for body in [format!("[{}0]", "0,".repeat(MIB / 2)), format!("[{}[]]", "[],".repeat(MIB / 3))] {
        let by_key = peak(|layer| layer.key(key::json("/id")), JSON, body.clone());
        assert_peak(by_key, 400, 4 * MIB);
        let by_value = peak(|layer| layer.fingerprint(fingerprint::json()), JSON, body);
        assert_peak(by_value, 400, 4 * MIB);
    }
    let members = format!("{{{}\"b\":0}}", "\"a\":0,".repeat(MIB / 6));
    assert_peak(peak(|layer| layer.fingerprint(fingerprint::json()), JSON, members), 400, 6 * MIB);
}

#[test]
fn large_json_takes_about_its_own_size() {
    let body = format!("[{}0]", format!("\"{}\",", "x".repeat(1000)).repeat(1000));
    assert_peak(peak(|layer| layer.fingerprint(fingerprint::json()), JSON, body), 200, MIB / 2);
}
