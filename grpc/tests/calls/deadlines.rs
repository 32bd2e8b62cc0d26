//! A client that waits no longer, or leaves.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Response};
use tower_idempotency::{BackgroundTasks, MemoryStore, Policy, WhileRunning};
use tower_idempotency_grpc::GrpcLayer;

use crate::bank::{Bank, Receipt, info, order, pay, seen, serve};

/// Takes five seconds for each order.
fn slow() -> Bank {
    Bank::new(|_, run| async move {
        sleep(Duration::from_secs(5)).await;
        Ok(Response::new(Receipt::of(run)))
    })
}

fn within(seconds: u64, request: tonic::Request<crate::bank::Order>) -> tonic::Request<crate::bank::Order> {
    let mut request = request;
    request.set_timeout(Duration::from_secs(seconds));
    request
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait_and_not_the_work() {
    let bank = slow();
    let tasks = BackgroundTasks::new();
    let service = serve(&GrpcLayer::new(MemoryStore::new()).background_tasks(tasks.clone()), &bank);
    let began = Instant::now();
    let status = pay(&service, within(2, order("a", 7))).await.unwrap_err();
    assert_eq!((status.code(), began.elapsed().as_secs()), (Code::DeadlineExceeded, 2));
    assert_eq!(info(&status).reason, "deadline-exceeded");
    // It goes on, and the retry finds it running.
    assert_eq!(pay(&service, order("a", 7)).await.unwrap_err().code(), Code::Aborted);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (1, true));
    assert_eq!((bank.runs(), tasks.count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_waits_until_its_own_deadline() {
    let bank = slow();
    let wait = Policy::replay().while_running(WhileRunning::Wait(Duration::from_secs(60)));
    let service = serve(&GrpcLayer::new(MemoryStore::new()).policy(wait), &bank);
    let running = service.clone();
    let first = tokio::spawn(async move { pay(&running, order("a", 7)).await });
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    assert_eq!(pay(&service, within(2, order("a", 7))).await.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(began.elapsed().as_secs(), 2);
    assert_eq!(seen(&pay(&service, within(30, order("a", 7))).await.unwrap()), (1, true));
    assert!(first.await.unwrap().is_ok());
    assert_eq!(bank.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_goes_on() {
    let bank = slow();
    let service = serve(&GrpcLayer::new(MemoryStore::new()), &bank);
    assert!(timeout(Duration::from_secs(1), pay(&service, order("a", 7))).await.is_err());
    sleep(Duration::from_secs(5)).await;
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (1, true));
}
