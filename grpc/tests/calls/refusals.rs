//! What a client receives if its call does not run.

use std::time::Duration;

use tonic::{Code, Response};
use tonic_types::StatusExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Policy,
    store::{StoreErrorKind, StoreVerb},
    testing::FaultyStore,
};
use tower_idempotency_grpc::{GrpcLayer, scope};

use crate::bank::{Bank, Receipt, info, order, pay, refused, serve};

fn layer() -> GrpcLayer {
    GrpcLayer::new(MemoryStore::new())
}

#[tokio::test(start_paused = true)]
async fn while_it_runs() {
    let bank = Bank::new(|_, run| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(Response::new(Receipt::of(run)))
    });
    let service = serve(&layer(), &bank);
    let running = service.clone();
    let first = tokio::spawn(async move { pay(&running, order("a", 7)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = pay(&service, order("a", 7)).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    let details = info(&status);
    assert_eq!((&*details.reason, &*details.domain), ("request-in-progress", "tower-idempotency"));
    assert_eq!(details.metadata["retryable"], "true");
    assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(1)));
    // Retry policies follow this one.
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "1000");
    assert!(first.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_second_try() {
    let service = serve(&layer().policy(Policy::reject()), &Bank::paying());
    pay(&service, order("a", 7)).await.unwrap();
    let status = pay(&service, order("a", 7)).await.unwrap_err();
    assert_eq!((status.code(), &*info(&status).reason), (Code::AlreadyExists, "duplicate-request"));
    assert_eq!(info(&status).metadata["retryable"], "false");
    assert!(status.get_details_retry_info().is_none());
}

#[tokio::test(start_paused = true)]
async fn keys() {
    let service = serve(&layer(), &Bank::paying());
    assert_eq!(refused(pay(&service, order("", 7)).await), (Code::InvalidArgument, "key-missing".into()));
    assert_eq!(refused(pay(&service, order(&"k".repeat(256), 7)).await), (Code::InvalidArgument, "key-invalid".into()));
}

#[tokio::test(start_paused = true)]
async fn another_content() {
    let service = serve(&layer(), &Bank::paying());
    pay(&service, order("a", 7)).await.unwrap();
    assert_eq!(refused(pay(&service, order("a", 8)).await), (Code::FailedPrecondition, "key-reused".into()));
}

#[tokio::test(start_paused = true)]
async fn another_caller() {
    let service = serve(&layer(), &Bank::paying());
    let by = |token: &str| {
        let mut request = order("a", 7);
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        request
    };
    pay(&service, by("ann")).await.unwrap();
    assert_eq!(refused(pay(&service, by("bob")).await), (Code::PermissionDenied, "other-caller".into()));
}

#[tokio::test(start_paused = true)]
async fn scopes() {
    let service = serve(&layer().scope(scope::metadata("x-tenant")), &Bank::paying());
    let of = |tenant: &str| {
        let mut request = order("a", 7);
        request.metadata_mut().insert("x-tenant", tenant.parse().unwrap());
        request
    };
    assert_eq!(pay(&service, of("north")).await.unwrap().get_ref().number, 1);
    assert_eq!(pay(&service, of("south")).await.unwrap().get_ref().number, 2);
    assert_eq!(pay(&service, of("north")).await.unwrap().get_ref().number, 1);
    assert_eq!(refused(pay(&service, order("a", 7)).await), (Code::InvalidArgument, "scope-missing".into()));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away() {
    let store = FaultyStore::new(MemoryStore::new());
    store.faults().on(StoreVerb::Claim).fail(StoreErrorKind::Unavailable);
    let bank = Bank::paying();
    let service = serve(&GrpcLayer::new(store.clone()), &bank);
    let status = pay(&service, order("a", 7)).await.unwrap_err();
    assert_eq!((status.code(), &*info(&status).reason), (Code::Unavailable, "store-unavailable"));
    assert!(status.get_details_retry_info().is_some());
    assert_eq!(bank.runs(), 0);
    let open = serve(&GrpcLayer::new(store).fail_open(), &bank);
    assert!(pay(&open, order("a", 7)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_nobody_knows() {
    let layer = layer().policy(Policy::at_most_once().lease(Duration::from_secs(1)));
    let bank = Bank::new(|_, _| std::future::pending());
    let service = serve(&layer.configure(IdempotencyLayer::cancel_on_disconnect), &bank);
    let gone = tokio::time::timeout(Duration::from_millis(100), pay(&service, order("a", 7))).await;
    assert!(gone.is_err());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(refused(pay(&service, order("a", 7)).await), (Code::FailedPrecondition, "outcome-unknown".into()));
    assert_eq!(bank.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_to_be_kept() {
    let bank =
        Bank::new(
            |_, run| async move { Ok(Response::new(Receipt { number: run as u64, note: vec![7; 1000].into() })) },
        );
    let service = serve(&layer().response_limit(999), &bank);
    assert_eq!(pay(&service, order("a", 7)).await.unwrap().get_ref().note.len(), 1000);
    assert_eq!(refused(pay(&service, order("a", 7)).await), (Code::AlreadyExists, "response-not-retained".into()));
    assert_eq!(bank.runs(), 1);
}
