//! A service of every kind of method, and its client.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, uri::PathAndQuery};
use http_body_util::BodyExt;
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    client::Grpc as Client,
    codec::CompressionEncoding,
    server::{Grpc as Server, NamedService},
};
use tonic_prost::ProstCodec;
use tonic_types::{ErrorInfo, StatusExt};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency_grpc::{GrpcLayer, service::GrpcIdempotency};

pub(crate) const PAY: &str = "/test.Bank/Pay";
pub(crate) const WATCH: &str = "/test.Bank/Watch";
pub(crate) const UPLOAD: &str = "/test.Bank/Upload";
pub(crate) const CHAT: &str = "/test.Bank/Chat";

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Order {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(uint64, tag = "2")]
    pub(crate) amount: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) note: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Receipt {
    #[prost(uint64, tag = "1")]
    pub(crate) number: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) note: Bytes,
}

impl Receipt {
    pub(crate) fn of(number: usize) -> Self {
        Self { number: number as u64, note: Bytes::new() }
    }
}

type Answer = Result<Response<Receipt>, Status>;
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;
type Handler = dyn Fn(Request<Order>, usize) -> Answering + Send + Sync;

/// The service. Its unary method does what the test says; of the others each message is answered with its number.
#[derive(Clone)]
pub(crate) struct Bank {
    handler: Arc<Handler>,
    pub(crate) runs: Arc<AtomicUsize>,
    compressed: bool,
}

impl NamedService for Bank {
    const NAME: &'static str = "test.Bank";
}

impl Bank {
    /// The handler of `Pay` gets its request and how many runs there were, with this one.
    pub(crate) fn new<F>(handler: impl Fn(Request<Order>, usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let handler = Arc::new(move |request, run| Box::pin(handler(request, run)) as Answering);
        Self { handler, runs: Arc::default(), compressed: false }
    }

    /// Each order is paid.
    pub(crate) fn paying() -> Self {
        Self::new(|_, run| async move { Ok(Response::new(Receipt::of(run))) })
    }

    /// Takes and gives compressed messages if the other side does.
    pub(crate) fn compressed(self) -> Self {
        Self { compressed: true, ..self }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }

    fn server(&self) -> Server<ProstCodec<Receipt, Order>> {
        let server = Server::new(ProstCodec::default());
        if !self.compressed {
            return server;
        }
        server.accept_compressed(CompressionEncoding::Gzip).send_compressed(CompressionEncoding::Gzip)
    }

    async fn answer<B>(self, request: http::Request<B>) -> http::Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
        B::Data: Send,
    {
        let run = self.runs.fetch_add(1, SeqCst) + 1;
        let mut server = self.server();
        match request.uri().path() {
            PAY => {
                let handler = self.handler.clone();
                server.unary(service_fn(move |order| handler(order, run)), request).await
            }
            WATCH => server.server_streaming(service_fn(watch), request).await,
            UPLOAD => server.client_streaming(service_fn(upload), request).await,
            CHAT => server.streaming(service_fn(chat), request).await,
            _ => Status::unimplemented("").into_http(),
        }
    }
}

impl<B> Service<http::Request<B>> for Bank
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    B::Data: Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let answer = self.clone().answer(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

type Receipts = Pin<Box<dyn Stream<Item = Result<Receipt, Status>> + Send>>;

/// As many receipts as the amount says, one at once and the others after pauses of as many seconds as the note is long.
async fn watch(request: Request<Order>) -> Result<Response<Receipts>, Status> {
    let order = request.into_inner();
    if order.id == "unknown" {
        return Err(Status::unavailable("not now"));
    }
    let pause = Duration::from_secs(order.note.len() as u64);
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        for number in 1..=order.amount {
            if number > 1 {
                tokio::time::sleep(pause).await;
            }
            if sender.send(Ok(Receipt { number, note: Bytes::new() })).await.is_err() {
                break;
            }
        }
    });
    Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
}

/// The number of messages.
async fn upload(request: Request<Streaming<Order>>) -> Result<Response<Receipt>, Status> {
    let orders = request.into_inner().collect::<Result<Vec<_>, _>>().await?;
    Ok(Response::new(Receipt::of(orders.len())))
}

/// A receipt for each message.
async fn chat(request: Request<Streaming<Order>>) -> Result<Response<Receipts>, Status> {
    let mut number = 0;
    let receipts = request.into_inner().map(move |order| {
        number += 1;
        order.map(|_| Receipt::of(number))
    });
    Ok(Response::new(Box::pin(receipts)))
}

pub(crate) type Served = GrpcIdempotency<Bank>;

/// Puts a layer around the service.
pub(crate) fn serve(layer: &GrpcLayer, bank: &Bank) -> Served {
    layer.layer(bank.clone())
}

pub(crate) fn client(service: &Served) -> Client<Served> {
    Client::new(service.clone())
}

/// A call with this key, of this amount.
pub(crate) fn order(key: &str, amount: u64) -> Request<Order> {
    let mut request = Request::new(Order { id: format!("order {amount}"), amount, note: Bytes::new() });
    if !key.is_empty() {
        request.metadata_mut().insert("idempotency-key", key.parse().unwrap());
    }
    request
}

pub(crate) async fn pay(service: &Served, request: Request<Order>) -> Answer {
    let mut client = client(service);
    client.ready().await.unwrap();
    client.unary(request, PathAndQuery::from_static(PAY), ProstCodec::default()).await
}

/// The number of a receipt, and whether it is a replay.
pub(crate) fn seen(answer: &Response<Receipt>) -> (u64, bool) {
    (answer.get_ref().number, answer.metadata().contains_key("idempotent-replayed"))
}

/// The details of a refusal.
pub(crate) fn info(status: &Status) -> ErrorInfo {
    status.get_details_error_info().expect("a refusal has details")
}

/// Code and reason of a refusal.
pub(crate) fn refused(answer: Answer) -> (tonic::Code, String) {
    let status = answer.unwrap_err();
    (status.code(), info(&status).reason)
}

/// An answer as it is on the wire: status, head, body, trailers.
#[derive(Debug, PartialEq)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// Sends bytes as a request.
pub(crate) async fn send(service: &Served, key: &str, headers: &[(&'static str, &str)], body: impl Into<Bytes>) -> Raw {
    let mut request = http::Request::post(PAY).header("content-type", "application/grpc").header("te", "trailers");
    if !key.is_empty() {
        request = request.header("idempotency-key", key);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Body::new(http_body_util::Full::new(body.into()));
    let response = service.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned();
    Raw { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes(), trailers }
}

/// A message with its prefix.
pub(crate) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[flag][..], &length.to_be_bytes(), message].concat()
}
