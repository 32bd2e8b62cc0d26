//! Streams, in both directions.

use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::time::{Instant, timeout};
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower_idempotency::MemoryStore;
use tower_idempotency_grpc::{ClientStreams, GrpcLayer};

use crate::bank::{Bank, CHAT, Order, Receipt, Served, UPLOAD, WATCH, client, info, order, serve};

fn layer() -> GrpcLayer {
    GrpcLayer::new(MemoryStore::new())
}

/// `amount` messages, with pauses of `pause` seconds between them.
async fn watch(service: &Served, key: &str, amount: u64, pause: usize) -> Result<Response<Streaming<Receipt>>, Status> {
    let mut request = order(key, amount);
    request.get_mut().note = vec![0; pause].into();
    let mut client = client(service);
    client.ready().await.unwrap();
    client.server_streaming(request, PathAndQuery::from_static(WATCH), ProstCodec::default()).await
}

fn with_key<S>(stream: S, key: &str) -> Request<S> {
    let mut request = Request::new(stream);
    if !key.is_empty() {
        request.metadata_mut().insert("idempotency-key", key.parse().unwrap());
    }
    request
}

async fn upload<S>(service: &Served, key: &str, orders: S) -> Result<Response<Receipt>, Status>
where
    S: Stream<Item = Order> + Send + 'static,
{
    let mut client = client(service);
    client.ready().await.unwrap();
    let codec = ProstCodec::default();
    client.client_streaming(with_key(orders, key), PathAndQuery::from_static(UPLOAD), codec).await
}

fn some(count: u64) -> Vec<Order> {
    (0..count).map(|amount| Order { id: String::new(), amount, note: Bytes::new() }).collect()
}

#[tokio::test(start_paused = true)]
async fn a_streaming_answer_streams_and_is_not_kept() {
    let named = layer().server_streams(["test.Bank/Watch"]);
    // By the second message, by the time that it takes, by its name.
    for (layer, pause, latest) in [(layer(), 0, 0), (layer(), 60, 1), (named, 60, 0)] {
        let bank = Bank::paying();
        let service = serve(&layer, &bank);
        let began = Instant::now();
        let mut stream = watch(&service, "a", 3, pause).await.unwrap().into_inner();
        assert_eq!(stream.next().await.unwrap().unwrap().number, 1);
        assert!(began.elapsed() <= Duration::from_secs(latest), "its first message comes before its last");
        assert_eq!(stream.next().await.unwrap().unwrap().number, 2);
        // While it streams, and afterwards.
        for _ in 0..2 {
            let status = watch(&service, "a", 3, pause).await.unwrap_err();
            assert_eq!((status.code(), &*info(&status).reason), (Code::AlreadyExists, "response-not-retained"));
            while stream.next().await.is_some() {}
        }
        assert_eq!(bank.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_one_message_or_none_that_ends_at_once_is_kept() {
    let service = serve(&layer(), &Bank::paying());
    for amount in [0, 1] {
        for _ in 0..2 {
            let stream = watch(&service, &format!("key-{amount}"), amount, 0).await.unwrap().into_inner();
            assert_eq!(stream.collect::<Vec<_>>().await.len() as u64, amount);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_at_once_releases_its_key() {
    for layer in [layer(), layer().server_streams(["test.Bank"])] {
        let bank = Bank::paying();
        let service = serve(&layer, &bank);
        for runs in 1..=2 {
            let mut request = order("a", 1);
            request.get_mut().id = "unknown".into();
            let mut client = client(&service);
            client.ready().await.unwrap();
            let path = PathAndQuery::from_static(WATCH);
            let answer = client.server_streaming::<_, Receipt, _>(request, path, ProstCodec::default()).await;
            assert_eq!((answer.unwrap_err().code(), bank.runs()), (Code::Unavailable, runs));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_request_with_a_key_is_refused() {
    let bank = Bank::paying();
    let service = serve(&layer(), &bank);
    // Its second message shows it.
    let status = upload(&service, "a", tokio_stream::iter(some(3))).await.unwrap_err();
    assert_eq!((status.code(), &*info(&status).reason), (Code::Unimplemented, "client-stream"));
    // Its first one is there, and nothing follows.
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    sender.send(Order::default()).await.unwrap();
    let began = Instant::now();
    let status = upload(&service, "a", ReceiverStream::new(receiver)).await.unwrap_err();
    assert_eq!((status.code(), began.elapsed().as_secs()), (Code::Unimplemented, 10));
    drop(sender);
    assert_eq!(bank.runs(), 0, "nothing was claimed");
}

/// Nothing at all comes, of a stream or of one message.
#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_begin_is_refused_in_time() {
    let service = serve(&layer(), &Bank::paying());
    let began = Instant::now();
    let status = upload(&service, "a", tokio_stream::pending()).await.unwrap_err();
    assert_eq!((status.code(), &*info(&status).reason), (Code::Unavailable, "body-timeout"));
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_method_passes_as_the_route_says() {
    let bank = Bank::paying();
    let service = serve(&layer().client_streams(ClientStreams::Pass, ["test.Bank/Upload", "test.Bank/Chat"]), &bank);
    for _ in 0..2 {
        assert_eq!(upload(&service, "a", tokio_stream::iter(some(3))).await.unwrap().into_inner().number, 3);
    }
    // Each message is answered before the next one is sent.
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let mut client = client(&service);
    client.ready().await.unwrap();
    let request = with_key(ReceiverStream::new(receiver), "a");
    sender.send(Order::default()).await.unwrap();
    let path = PathAndQuery::from_static(CHAT);
    let answer = timeout(Duration::from_secs(1), client.streaming(request, path, ProstCodec::default()));
    let mut receipts: Streaming<Receipt> = answer.await.unwrap().unwrap().into_inner();
    for number in 1..=3 {
        assert_eq!(receipts.next().await.unwrap().unwrap().number, number);
        sender.send(Order::default()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_method_is_refused_as_the_route_says() {
    let bank = Bank::paying();
    let refusing = layer().client_streams(ClientStreams::Refuse, ["test.Bank/Upload"]);
    let service = serve(&refusing.clone().key_optional(), &bank);
    let began = Instant::now();
    // Nothing of the stream is awaited.
    let status = upload(&service, "a", tokio_stream::pending()).await.unwrap_err();
    assert_eq!((status.code(), &*info(&status).reason), (Code::Unimplemented, "client-stream"));
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Its client does not count on being protected.
    assert_eq!(upload(&service, "", tokio_stream::iter(some(3))).await.unwrap().into_inner().number, 3);
    let status = upload(&serve(&refusing, &bank), "", tokio_stream::iter(some(3))).await.unwrap_err();
    assert_eq!((status.code(), &*info(&status).reason), (Code::InvalidArgument, "key-missing"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_key_passes_where_keys_are_optional() {
    let service = serve(&layer().key_optional(), &Bank::paying());
    assert_eq!(upload(&service, "", tokio_stream::iter(some(3))).await.unwrap().into_inner().number, 3);
}
