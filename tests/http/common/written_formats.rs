//! Records as a version wrote them, and what the current code has to make of them, on whatever store.
//!
//! `write` filled the stores whose contents are in `tests/fixtures`, a folder a version. Those files never change: a
//! process of the next version meets such records on the day it is deployed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, routing::post};
use http::{Request, Response, StatusCode, header::LOCATION};
use http_body_util::BodyExt;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, scope,
    store::{
        Binding, Claim, Claimant, Claimed, Finished, Issue, Issued, Origin, RecordKey, Release, Settlement, State,
        StoreAdmin, TraceContext,
    },
};

/// Longer than anybody keeps the fixtures.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
const MINUTE: Duration = Duration::from_secs(60);

const NOTE: &str = "what was asked for";

fn key(name: &str) -> RecordKey {
    RecordKey::new("/orders/{id}", Some("ann"), name).unwrap()
}

fn claimant(number: u8) -> Claimant {
    Claimant::from_bytes([number; 16])
}

fn claim(number: u8) -> Claim {
    claim_with(number, |_| ())
}

fn claim_with(number: u8, set: impl FnOnce(&mut Claim)) -> Claim {
    let mut claim = Claim::new(Duration::ZERO, CENTURY);
    claim.claimant = claimant(number);
    set(&mut claim);
    claim
}

fn token_claim(number: u8) -> Claim {
    claim_with(number, |claim| claim.issued = Some(Binding::new("order", Some("ann"))))
}

fn trace() -> TraceContext {
    TraceContext::new([0xab; 16], [0xcd; 8], 1)
}

fn large() -> String {
    "large ".repeat(1000)
}

/// Returns the folder of each version.
pub(crate) fn versions() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let versions: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!versions.is_empty());
    versions
}

/// Returns the folder of the version that `scripts/freeze-formats` names.
pub(crate) fn new_version() -> PathBuf {
    let name = std::env::var("FORMATS").expect("scripts/freeze-formats names the version");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Fills an empty store.
pub(crate) async fn write<S: StoreAdmin + Clone>(store: S) {
    let granted = async |name: &str, claim: &Claim| {
        let claimed = store.claim(&key(name), claim).await.unwrap();
        assert!(matches!(claimed, Claimed::Granted(_)), "{name}: {claimed:?}");
    };
    let settled = async |name: &str, number: u8, payload: Option<&str>| {
        let payload = payload.map(|payload| payload.to_owned().into());
        let settlement = Settlement::new(claimant(number), payload, CENTURY);
        assert!(matches!(store.settle(&key(name), &settlement).await.unwrap(), Finished::Done));
    };
    let traced = claim_with(1, |claim| (claim.note, claim.trace) = (NOTE.into(), Some(trace())));
    granted("settled", &traced).await;
    settled("settled", 1, Some("answer")).await;
    granted("tombstone", &claim(2)).await;
    settled("tombstone", 2, None).await;
    granted("large", &claim(3)).await;
    settled("large", 3, Some(&large())).await;
    granted("abandoned", &claim_with(4, |claim| claim.note = NOTE.into())).await;
    granted("once", &claim_with(5, |claim| claim.at_most_once = true)).await;
    granted("released", &claim(6)).await;
    let release = Release::new(claimant(6), CENTURY);
    assert!(matches!(store.release(&key("released"), &release).await.unwrap(), Finished::Done));
    for name in ["issued", "spent"] {
        let issue = Issue::new(Binding::new("order", Some("ann")), CENTURY);
        assert_eq!(store.issue(&key(name), &issue).await.unwrap(), Issued::Done);
    }
    granted("spent", &token_claim(7)).await;
    settled("spent", 7, Some("spent")).await;
    for (key, body) in REQUESTS {
        assert_eq!(ask(&store, key, body, 1).await, (StatusCode::CREATED, false, body.to_owned()));
    }
}

/// Reads the store that a version has filled.
pub(crate) async fn read<S: StoreAdmin + Clone>(store: S) {
    let claimed = async |name: &str, claim: &Claim| store.claim(&key(name), claim).await.unwrap();
    let kept = |payload: &str| Claimed::Settled(Some(payload.to_owned().into()), Origin::NONE);
    assert_eq!(claimed("settled", &claim(11)).await, kept("answer"));
    assert_eq!(claimed("tombstone", &claim(11)).await, Claimed::Settled(None, Origin::NONE));
    assert_eq!(claimed("large", &claim(11)).await, kept(&large()));
    assert_eq!(claimed("spent", &token_claim(11)).await, kept("spent"));
    assert_eq!(claimed("spent", &claim(11)).await, Claimed::Foreign);

    let record = store.inspect(&key("settled")).await.unwrap().unwrap();
    assert_eq!((record.state, record.claimant, record.attempt), (State::Settled, claimant(1), 1));
    assert_eq!((&*record.note, record.trace), (NOTE.as_bytes(), Some(trace())));
    assert!(record.expires_in > CENTURY / 2 && record.settled.is_some());
    let abandoned = store.inspect(&key("abandoned")).await.unwrap().unwrap();
    assert!(abandoned.is_abandoned() && abandoned.note == NOTE);

    let attempt = async |name: &str, claim: &Claim| match claimed(name, claim).await {
        Claimed::Granted(granted) => (granted.attempt, granted.takeover),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(attempt("abandoned", &claim(12)).await, (2, true));
    assert_eq!(attempt("released", &claim(13)).await, (2, false));
    assert_eq!(attempt("issued", &token_claim(14)).await, (1, false));
    let unknown = claimed("once", &claim_with(15, |claim| claim.at_most_once = true)).await;
    assert!(matches!(unknown, Claimed::OutcomeUnknown), "{unknown:?}");
    // The one that has taken over ends the claim.
    let settlement = Settlement::new(claimant(12), Some("later".into()), MINUTE);
    assert!(matches!(store.settle(&key("abandoned"), &settlement).await.unwrap(), Finished::Done));

    for (key, body) in REQUESTS {
        assert_eq!(ask(&store, key, body, 0).await, (StatusCode::CREATED, true, body.to_owned()), "{key}");
        let (status, _, _) = ask(&store, key, "other", 0).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{key}");
    }
}

/// The key of a request, and its body.
const REQUESTS: [(&str, &str); 3] = [("empty", ""), ("short", "one book"), ("quoted \\ key", "two books")];

/// Sends a request through a layer, which is to run the handler so many times. Returns the status, whether the answer
/// was replayed, and its body.
async fn ask<S: StoreAdmin + Clone>(
    store: &S,
    key: &str,
    body: &'static str,
    runs: usize,
) -> (StatusCode, bool, String) {
    let ran = Arc::new(AtomicUsize::new(0));
    let handler = post({
        let ran = Arc::clone(&ran);
        move |body: String| async move {
            ran.fetch_add(1, Ordering::SeqCst);
            (StatusCode::CREATED, [(LOCATION, "/orders/7")], body)
        }
    });
    let layer = IdempotencyLayer::new(store.clone()).scope(scope::header("x-user")).retention(CENTURY);
    let request = Request::post("/orders?draft=1")
        .header("idempotency-key", format!("\"{}\"", key.replace('\\', "\\\\")))
        .header("x-user", "ann")
        .header("authorization", "Bearer of Ann")
        .header("content-type", "text/plain")
        .body(Body::from(body))
        .unwrap();
    let answer = Router::new().route("/orders", handler).layer(layer).oneshot(request).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), runs, "{key}: {}", answer.status());
    let replayed = answer.headers().contains_key("idempotent-replayed");
    if replayed {
        assert_eq!(answer.headers()[LOCATION], "/orders/7");
    }
    (answer.status(), replayed, text(answer).await)
}

async fn text(answer: Response<Body>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}
