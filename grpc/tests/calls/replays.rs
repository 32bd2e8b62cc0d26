//! Unary calls: what a retry receives.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use prost::Message;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Layer;
use tower_idempotency::{
    Keep, MemoryStore, OnDuplicate, Operation, Policy, WhileRunning,
    store::{RecordKey, StoreAdmin},
};
use tower_idempotency_grpc::GrpcLayer;

use crate::bank::{Bank, Order, PAY, Receipt, framed, order, pay, seen, send, serve};

fn layer() -> GrpcLayer {
    GrpcLayer::new(MemoryStore::new())
}

#[tokio::test(start_paused = true)]
async fn a_retry_receives_the_first_answer() {
    let bank = Bank::paying();
    let service = serve(&layer(), &bank);
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (1, false));
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (1, true));
    assert_eq!(seen(&pay(&service, order("b", 7)).await.unwrap()), (2, false));
    assert_eq!(bank.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn byte_for_byte_with_metadata_and_trailers() {
    let bank = Bank::new(|_, run| async move {
        let mut response = Response::new(Receipt::of(run));
        response.metadata_mut().insert("x-branch", "north".parse().unwrap());
        Ok(response)
    });
    let service = serve(&layer(), &bank);
    let body = framed(0, &Order { id: "1".into(), ..Order::default() }.encode_to_vec());
    let first = send(&service, "a", &[], body.clone()).await;
    assert_eq!((first.status, &first.headers["x-branch"]), (200, &"north".parse().unwrap()));
    assert_eq!(first.body, framed(0, &Receipt::of(1).encode_to_vec()));
    assert_eq!(first.trailers.as_ref().unwrap()["grpc-status"], "0");
    let mut replay = send(&service, "a", &[], body).await;
    assert_eq!(replay.headers.remove("idempotent-replayed").unwrap(), "true");
    assert_eq!(replay, first);
}

#[tokio::test(start_paused = true)]
async fn a_kept_error_comes_back_with_message_details_and_metadata() {
    let bank = Bank::new(|_, run| async move {
        let mut status = Status::with_details(Code::NotFound, "no account “7”", vec![8, 5].into());
        status.metadata_mut().insert("x-run", run.into());
        Err(status)
    });
    let layer = layer().policy(Policy::replay().keep(Keep::FINAL));
    let service = serve(&layer, &bank);
    for try_ in 0..3 {
        let status = pay(&service, order("a", 7)).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message(), status.details()),
            (Code::NotFound, "no account “7”", &[8, 5][..])
        );
        assert_eq!(status.metadata().get("x-run").unwrap(), "1");
        assert_eq!(status.metadata().contains_key("idempotent-replayed"), try_ > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn two_methods_are_two_operations() {
    let store = MemoryStore::new();
    let service = serve(&GrpcLayer::new(store.clone()), &Bank::paying());
    pay(&service, order("a", 7)).await.unwrap();
    let record = store.inspect(&RecordKey::new(PAY, None, "a").unwrap()).await.unwrap();
    assert!(record.is_some(), "a record is named by the path of its method");
}

#[tokio::test(start_paused = true)]
async fn the_handler_sees_its_operation() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = told.clone();
    let bank = Bank::new(move |request: Request<Order>, run| {
        let operation = request.extensions().get::<Operation>().expect("an operation");
        seen.lock().unwrap().push((operation.key().to_owned(), operation.attempt()));
        async move { if run == 1 { Err(Status::internal("fell")) } else { Ok(Response::new(Receipt::of(run))) } }
    });
    let service = serve(&layer(), &bank);
    assert_eq!(pay(&service, order("a", 7)).await.unwrap_err().code(), Code::Internal);
    assert!(pay(&service, order("a", 7)).await.is_ok());
    assert_eq!(*told.lock().unwrap(), [("a".to_owned(), 1), ("a".to_owned(), 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_key_is_refused_or_passes() {
    let bank = Bank::paying();
    assert_eq!(pay(&serve(&layer(), &bank), order("", 7)).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(bank.runs(), 0);
    let optional = serve(&layer().key_optional(), &bank);
    for run in 1..=2 {
        assert_eq!(seen(&pay(&optional, order("", 7)).await.unwrap()), (run, false));
    }
}

#[tokio::test(start_paused = true)]
async fn methods_that_are_left_out_pass() {
    let bank = Bank::paying();
    for layer in [layer().only(["test.Bank/Watch"]), layer().skip(["test.Bank"])] {
        let service = serve(&layer, &bank);
        let (one, two) = (pay(&service, order("a", 7)).await.unwrap(), pay(&service, order("a", 7)).await.unwrap());
        assert!(seen(&one).0 < seen(&two).0);
    }
}

#[tokio::test(start_paused = true)]
async fn of_calls_at_once_one_runs() {
    let bank = Bank::new(|_, run| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Response::new(Receipt::of(run)))
    });
    let wait = WhileRunning::Wait(Duration::from_secs(5));
    let layer = layer().policy(Policy::replay().while_running(wait));
    let service = serve(&layer, &bank);
    let calls = (0..50).map(|_| {
        let service = service.clone();
        tokio::spawn(async move { seen(&pay(&service, order("a", 7)).await.unwrap()) })
    });
    let mut replays = 0;
    for call in calls.collect::<Vec<_>>() {
        let (number, is_replay) = call.await.unwrap();
        assert_eq!(number, 1);
        replays += usize::from(is_replay);
    }
    assert_eq!((replays, bank.runs()), (49, 1));
}

/// Around the server, and around one of its services.
#[tokio::test(start_paused = true)]
async fn the_same_layer_twice_does_no_harm() {
    let bank = Bank::new(|_, run| async move {
        if run == 1 { Err(Status::unavailable("not now")) } else { Ok(Response::new(Receipt::of(run))) }
    });
    let layer = layer();
    let service = layer.layer(layer.layer(bank.clone()));
    let call = async || {
        let mut client = tonic::client::Grpc::new(service.clone());
        client.ready().await.unwrap();
        let path = http::uri::PathAndQuery::from_static(PAY);
        client.unary(order("a", 7), path, ProstCodec::<Order, Receipt>::default()).await
    };
    assert_eq!(call().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(seen(&call().await.unwrap()), (2, false));
    assert_eq!(seen(&call().await.unwrap()), (2, true));
    assert_eq!(bank.runs(), 2);
}

/// The handler answers duplicates itself.
#[tokio::test(start_paused = true)]
async fn a_duplicate_that_passes_through() {
    let bank = Bank::new(|request: Request<Order>, run| {
        let is_duplicate = request.extensions().get::<Operation>().unwrap().is_duplicate();
        async move {
            if is_duplicate {
                Err(Status::already_exists(format!("run {run}")))
            } else {
                Ok(Response::new(Receipt::of(run)))
            }
        }
    });
    let policy = Policy::replay().on_duplicate(OnDuplicate::PassThrough);
    let service = serve(&layer().policy(policy), &bank);
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (1, false));
    for run in 2..4 {
        let status = pay(&service, order("a", 7)).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::AlreadyExists, &*format!("run {run}")));
    }
}

/// What it did may have been done.
#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_releases_its_key() {
    let bank = Bank::new(|_, run| async move {
        assert!(run > 1, "the first one falls");
        Ok(Response::new(Receipt::of(run)))
    });
    let service = serve(&layer(), &bank);
    let falls = service.clone();
    assert!(tokio::spawn(async move { pay(&falls, order("a", 7)).await }).await.unwrap_err().is_panic());
    assert_eq!(seen(&pay(&service, order("a", 7)).await.unwrap()), (2, false));
}
