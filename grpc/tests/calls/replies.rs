//! Answers of the application's own.

use std::{
    future::{pending, ready},
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tonic::{Code, Status};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, OnDuplicate, Policy, Reconciler,
    policy::Reply,
    reconcile::{Payload, Resolution},
};
use tower_idempotency_grpc::{GrpcLayer, reply};

use crate::bank::{Bank, Receipt, order, pay, seen, serve};

#[tokio::test(start_paused = true)]
async fn a_reply_to_duplicates() {
    let known = Reply::from_fn(|duplicate| {
        assert!(duplicate.kept().is_some());
        reply::message(&Receipt::of(99))
    });
    let layer = GrpcLayer::new(MemoryStore::new()).policy(Policy::replay().on_duplicate(OnDuplicate::Respond(known)));
    let service = serve(&layer, &Bank::paying());
    assert_eq!(pay(&service, order("a", 7)).await.unwrap().get_ref().number, 1);
    assert_eq!(pay(&service, order("a", 7)).await.unwrap().get_ref().number, 99);
    let gone = Reply::from_fn(|_| reply::status(&Status::already_exists("paid before")));
    let layer = GrpcLayer::new(MemoryStore::new()).policy(Policy::replay().on_duplicate(OnDuplicate::Respond(gone)));
    let service = serve(&layer, &Bank::paying());
    assert_eq!(pay(&service, order("a", 7)).await.unwrap().get_ref().number, 1);
    let status = pay(&service, order("a", 7)).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::AlreadyExists, "paid before"));
}

/// The process died, and a reconciler has found out how its operations ended.
#[tokio::test(start_paused = true)]
async fn operations_that_were_settled_by_a_reconciler() {
    let store = MemoryStore::new();
    let layer = GrpcLayer::new(store.clone()).policy(Policy::at_most_once().lease(Duration::from_secs(1)));
    let dies = serve(&layer.clone().configure(IdempotencyLayer::cancel_on_disconnect), &Bank::new(|_, _| pending()));
    for key in ["paid", "refused"] {
        assert!(timeout(Duration::from_millis(100), pay(&dies, order(key, 7))).await.is_err());
    }
    sleep(Duration::from_secs(2)).await;
    let reconciler = Reconciler::new(store, |abandoned| {
        let answer = match abandoned.key().key() {
            "paid" => reply::message(&Receipt::of(42)),
            _ => reply::status(&Status::failed_precondition("the account is closed")),
        };
        ready(Resolution::Settle(Payload::response(&answer)))
    });
    assert_eq!(reconciler.grace(Duration::ZERO).run_once().await.unwrap().settled, 2);
    let service = serve(&layer, &Bank::paying());
    assert_eq!(seen(&pay(&service, order("paid", 7)).await.unwrap()), (42, true));
    let status = pay(&service, order("refused", 7)).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "the account is closed"));
}
