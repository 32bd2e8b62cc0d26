//! What becomes of the effect and the record, for each way in which a handler can end.

use std::{
    future::{Future, poll_fn},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    task::Poll,
    time::Duration,
};

use axum::body::Body;
use tower_idempotency::{IdempotencyLayer, Keep, Policy, fingerprint};

use super::process::Process;
use crate::database::TestDatabase;

pub(crate) async fn success_is_kept_once<D: TestDatabase>() {
    let place = D::place().await;
    let process = Process::<D>::start(&place).await;
    let first = process.post("a", "insert").await;
    assert!(!first.is(201).replayed);
    let other = Process::<D>::start(&place).await;
    for process in [&process, &other] {
        let retry = process.post("a", "insert").await;
        assert!(retry.is(201).replayed);
        assert_eq!(retry.body, first.body);
        assert_eq!(process.effects("a").await, 1);
    }
}

pub(crate) async fn failure_leaves_nothing<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    for status in [400, 404, 500, 503] {
        process.post("a", &format!("insert;status={status}")).await.is(status);
        assert_eq!((process.effects("a").await, process.records().await), (0, 0), "{status}");
    }
    process.is_as_new("a").await;
}

pub(crate) async fn a_panic_leaves_nothing<D: TestDatabase>() {
    let process = Process::<D>::with(&D::place().await, 8, |layer| layer.keep(Keep::EVERYTHING)).await;
    assert!(process.spawn("a", "insert;panic").await.unwrap_err().is_panic());
    assert_eq!((process.effects("a").await, process.records().await), (0, 0));
    process.is_as_new("a").await;
}

pub(crate) async fn a_broken_answer_leaves_nothing<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    assert!(process.post("a", "insert;break").await.is(200).body.contains("broken"));
    assert_eq!((process.effects("a").await, process.records().await), (0, 0));
    process.is_as_new("a").await;
}

/// With a body that the layer hands on unread, whatever the policy keeps; what the handler keeps by itself is committed.
pub(crate) async fn a_request_that_breaks_leaves_nothing<D: TestDatabase>() {
    let place = D::place().await;
    let broken = || Body::from_stream(futures_util::stream::iter([Ok("abc"), Err(std::io::Error::other("gone"))]));
    for policy in [Policy::replay(), Policy::replay().keep(Keep::EVERYTHING), Policy::at_most_once()] {
        let process =
            Process::<D>::with(&place, 4, |layer| layer.policy(policy).fingerprint(fingerprint::off()).stream_body());
        let process = process.await;
        assert_eq!(process.send("a", "insert;body", broken()).await.is(201).body, "broke");
        assert_eq!((process.effects("a").await, process.records().await), (0, 0));
        assert_eq!(process.send("a", "insert;body", "whole").await.is(201).body, "5 bytes");
        assert!(process.send("a", "insert;body", "whole").await.is(201).replayed);
        assert_eq!(process.effects("a").await, 1);

        assert_eq!(process.send("b", "insert;keep-answer;body", broken()).await.is(201).body, "broke");
        assert!(process.send("b", "insert;body", "whole").await.is(201).replayed);
        assert_eq!(process.effects("b").await, 1);
        process.run("DELETE FROM idempotency_records").await;
        process.run("DELETE FROM effects").await;
    }
}

pub(crate) async fn a_client_that_leaves_an_attached_run_leaves_nothing<D: TestDatabase>() {
    let process = Process::<D>::with(&D::place().await, 8, IdempotencyLayer::cancel_on_disconnect).await;
    let client = process.spawn("a", "insert;gate");
    process.started().await;
    client.abort();
    let _ = client.await;
    process.is_as_new("a").await;
}

pub(crate) async fn a_client_that_leaves_does_not_stop_the_run<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    let client = process.spawn("a", "insert;gate");
    process.started().await;
    client.abort();
    let _ = client.await;
    process.post("a", "insert").await.is_problem(409, "request-in-progress");
    process.go_on();
    while !process.post("a", "insert").await.replayed {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(process.effects("a").await, 1);
}

pub(crate) async fn without_taking_the_transaction<D: TestDatabase>() {
    let process = Process::<D>::start(&D::place().await).await;
    process.post("a", "nothing").await.is(201);
    assert!(process.post("a", "nothing").await.is(201).replayed);
}

pub(crate) async fn a_long_answer_leaves_a_tombstone<D: TestDatabase>() {
    let process = Process::<D>::with(&D::place().await, 8, |layer| layer.response_limit(1000)).await;
    assert_eq!(process.post("a", "insert;long=5000").await.is(201).body.len(), 5000);
    process.post("a", "insert").await.is_problem(409, "response-not-retained");
    assert_eq!(process.effects("a").await, 1);
}

/// An answer that the policy keeps is committed with what was done, whatever it says.
pub(crate) async fn what_is_kept_is_committed<D: TestDatabase>() {
    let process = Process::<D>::with(&D::place().await, 8, |layer| layer.keep(Keep::FINAL)).await;
    process.post("a", "insert;status=404").await.is(404);
    assert!(process.post("a", "insert").await.is(404).replayed);
    assert_eq!(process.effects("a").await, 1);
}

/// What fails as late as at the commit is not reported as a success. MariaDB has no such constraints.
pub(crate) async fn a_late_constraint_is_no_success<D: TestDatabase>() {
    if D::NAME == "MySQL" {
        return;
    }
    let process = Process::<D>::start(&D::place().await).await;
    process.run("CREATE TABLE parents (id INTEGER PRIMARY KEY)").await;
    let child = "CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)";
    process.run(child).await;
    process.post("a", "insert;run=INSERT INTO children VALUES (7)").await.is_problem(500, "rolled-back");
    assert_eq!((process.effects("a").await, process.records().await), (0, 0));
    process.is_as_new("a").await;
}

/// A request that is given up after any number of steps leaves neither an effect nor a transaction on a connection.
pub(crate) async fn dropped_at_any_moment<D: TestDatabase>() {
    let place = D::place().await;
    let process = Process::<D>::with(&place, 1, IdempotencyLayer::cancel_on_disconnect).await;
    let other = Process::<D>::start(&place).await;
    for steps in 0..40 {
        let key = format!("k{steps}");
        let (polled, mut request) = (AtomicU32::new(0), Box::pin(process.post(&key, "insert")));
        let ended = poll_fn(|cx| {
            if polled.fetch_add(1, Relaxed) == steps {
                return Poll::Ready(false);
            }
            request.as_mut().poll(cx).map(|_| true)
        })
        .await;
        drop(request);
        // The one connection is as good as new, whatever was begun on it: what is written on it now is there for others.
        process.run(&format!("INSERT INTO effects VALUES ('{key}-probe')")).await;
        assert_eq!(other.effects(&format!("{key}-probe")).await, 1, "{steps}: a transaction that nobody has ended");
        let before = process.effects(&key).await;
        assert!(before <= 1, "{steps}");
        if !ended && before == 0 {
            process.is_as_new(&key).await;
        }
        assert_eq!(process.effects(&key).await, 1, "{steps}");
    }
}
