//! The layer in a server of tonic, over TCP.

use std::{net::Ipv4Addr, time::Duration};

use http::uri::PathAndQuery;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_stream::{StreamExt, wrappers::TcpListenerStream};
use tonic::{
    Code, Request, Response, Status,
    client::Grpc,
    service::{InterceptorLayer, LayerExt},
    transport::{Channel, Server},
};
use tonic_prost::ProstCodec;
use tower_idempotency::MemoryStore;
use tower_idempotency_grpc::GrpcLayer;

use crate::bank::{Bank, Order, PAY, Receipt, UPLOAD, WATCH, info, order, seen};

async fn pay(channel: &Channel, request: Request<Order>) -> Result<Response<Receipt>, Status> {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.unwrap();
    client.unary(request, PathAndQuery::from_static(PAY), ProstCodec::default()).await
}

async fn listen() -> (TcpListenerStream, Channel) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (TcpListenerStream::new(listener), Channel::from_shared(url).unwrap().connect_lazy())
}

/// The service by each of the two ways in which a layer is put around it.
async fn served(layer: &GrpcLayer, bank: &Bank) -> [Channel; 2] {
    let (incoming, all) = listen().await;
    let around_all = Server::builder().layer(layer.clone()).add_service(bank.clone());
    tokio::spawn(around_all.serve_with_incoming(incoming));
    let (incoming, one) = listen().await;
    let around_one = Server::builder().add_service(layer.named_layer(bank.clone()));
    tokio::spawn(around_one.serve_with_incoming(incoming));
    [all, one]
}

#[tokio::test]
async fn a_retry_receives_the_first_answer() {
    let bank = Bank::paying();
    // One store, so that the second server replays what the first one has kept.
    let channels = served(&GrpcLayer::new(MemoryStore::new()), &bank).await;
    let mut replays = Vec::new();
    for channel in channels.iter().chain(&channels) {
        replays.push(seen(&pay(channel, order("a", 7)).await.unwrap()));
    }
    assert_eq!(replays, [(1, false), (1, true), (1, true), (1, true)]);
    for channel in &channels {
        let status = pay(channel, order("a", 8)).await.unwrap_err();
        assert_eq!((status.code(), &*info(&status).reason), (Code::FailedPrecondition, "key-reused"));
    }
}

#[tokio::test]
async fn a_deadline_that_the_server_sees_too() {
    let bank = Bank::new(|_, run| async move {
        sleep(Duration::from_millis(300)).await;
        Ok(Response::new(Receipt::of(run)))
    });
    for channel in served(&GrpcLayer::new(MemoryStore::new()), &bank).await {
        let mut hurried = order("a", 7);
        hurried.set_timeout(Duration::from_millis(50));
        let code = pay(&channel, hurried).await.map_or_else(|status| status.code(), |_| Code::Ok);
        // The second server finds a record. Tonic's client calls a deadline a cancellation.
        assert!(matches!(code, Code::DeadlineExceeded | Code::Cancelled | Code::Ok), "{code:?}");
        let answer = loop {
            match pay(&channel, order("a", 7)).await {
                Err(status) if status.code() == Code::Aborted => sleep(Duration::from_millis(20)).await,
                ended => break ended.unwrap(),
            }
        };
        assert_eq!(seen(&answer), (1, true));
    }
    assert_eq!(bank.runs(), 1);
}

/// The connection breaks while the handler runs.
#[tokio::test]
async fn a_client_that_disconnects() {
    let bank = Bank::new(|_, run| async move {
        sleep(Duration::from_millis(300)).await;
        Ok(Response::new(Receipt::of(run)))
    });
    let channels = served(&GrpcLayer::new(MemoryStore::new()), &bank).await;
    for (at, channel) in channels.into_iter().enumerate() {
        let key = format!("key-{at}");
        assert!(timeout(Duration::from_millis(100), pay(&channel, order(&key, 7))).await.is_err());
        assert_eq!(bank.runs(), at + 1);
        sleep(Duration::from_millis(400)).await;
        assert_eq!(seen(&pay(&channel, order(&key, 7)).await.unwrap()), (at as u64 + 1, true));
    }
}

#[tokio::test]
async fn a_streaming_answer_streams() {
    let bank = Bank::paying();
    for (at, channel) in served(&GrpcLayer::new(MemoryStore::new()), &bank).await.into_iter().enumerate() {
        let watch = || async {
            let mut client = Grpc::new(channel.clone());
            client.ready().await.unwrap();
            let path = PathAndQuery::from_static(WATCH);
            let answer: Result<Response<tonic::Streaming<Receipt>>, _> =
                client.server_streaming(order(&format!("key-{at}"), 1000), path, ProstCodec::default()).await;
            answer
        };
        let receipts = watch().await.unwrap().into_inner();
        assert_eq!(receipts.collect::<Vec<_>>().await.len(), 1000);
        assert_eq!(watch().await.unwrap_err().code(), Code::AlreadyExists);
    }
}

/// Whom an interceptor has found.
#[derive(Clone)]
struct User(String);

/// The authentication is outside the layer.
#[tokio::test]
async fn a_user_from_an_interceptor_is_the_scope() {
    let authenticate = InterceptorLayer::new(|mut request: Request<()>| {
        let user = request.metadata().get("x-user").ok_or(Status::unauthenticated("who is it?"))?;
        let user = User(user.to_str().unwrap_or_default().to_owned());
        request.extensions_mut().insert(user);
        Ok(request)
    });
    let bank = Bank::paying();
    let layer =
        GrpcLayer::new(MemoryStore::new()).scope(tower_idempotency::scope::extension(|user: &User| user.0.clone()));
    let (incoming, channel) = listen().await;
    let server = Server::builder().layer(authenticate).layer(layer).add_service(bank.clone());
    tokio::spawn(server.serve_with_incoming(incoming));
    let by = |user: &'static str| {
        let mut request = order("a", 7);
        request.metadata_mut().insert("x-user", user.parse().unwrap());
        request
    };
    assert_eq!(seen(&pay(&channel, by("ann")).await.unwrap()), (1, false));
    assert_eq!(seen(&pay(&channel, by("bob")).await.unwrap()), (2, false));
    assert_eq!(seen(&pay(&channel, by("ann")).await.unwrap()), (1, true));
    assert_eq!(pay(&channel, order("a", 7)).await.unwrap_err().code(), Code::Unauthenticated);
}

/// Its client receives the refusal while it is still sending.
#[tokio::test]
async fn a_stream_that_goes_on_is_refused() {
    let layer = GrpcLayer::new(MemoryStore::new()).end_timeout(Duration::from_millis(200));
    for channel in served(&layer, &Bank::paying()).await {
        let mut client = Grpc::new(channel);
        client.ready().await.unwrap();
        let orders = tokio_stream::once(Order::default()).chain(tokio_stream::pending());
        let mut request = Request::new(orders);
        request.metadata_mut().insert("idempotency-key", "a".parse().unwrap());
        let codec = ProstCodec::<Order, Receipt>::default();
        let answer = client.client_streaming(request, PathAndQuery::from_static(UPLOAD), codec);
        let status = timeout(Duration::from_secs(20), answer).await.unwrap().unwrap_err();
        assert_eq!((status.code(), &*info(&status).reason), (Code::Unimplemented, "client-stream"));
    }
}
