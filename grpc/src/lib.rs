//! Tower middleware that makes calls of gRPC safe to repeat, for [tonic].
//!
//! A call repeats if its client retries: after `UNAVAILABLE`, after a connection that broke, after a deadline.
//! [`GrpcLayer`] gives such a retry the first call's answer, with its trailers, and lets nothing happen twice. It has the
//! stores, policies and promises of [`tower_idempotency`], whose `IdempotencyLayer` does not fit gRPC: there a status is
//! in the trailers of an answer that HTTP calls a success, and a refusal has to be a status.
//!
//! ```
//! use tonic::{Request, Response, Status, transport::Server};
//! use tower_idempotency::{MemoryStore, Operation};
//! use tower_idempotency_grpc::GrpcLayer;
//!
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Order {}
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Receipt {}
//! // A method of a service of tonic.
//! async fn create(request: Request<Order>) -> Result<Response<Receipt>, Status> {
//!     let attempt = request.extensions().get::<Operation>().map(Operation::attempt);
//!     // An earlier attempt may have come some way: ask there before doing it again.
//!     # drop(attempt);
//!     Ok(Response::new(Receipt::default()))
//! }
//!
//! let layer = GrpcLayer::new(MemoryStore::new()).only(["shop.Orders/Create"]);
//! let server = Server::builder().layer(layer); // .add_service(OrdersServer::new(..)).serve(..)
//! # drop((server, create));
//! ```
//!
//! A client sends the key in the metadata `idempotency-key`, and the same key with each retry.
//!
//! The [guide] has the rest: which methods, which keys, which statuses are kept, what clients receive and should retry.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `gzip` | yes | requests that are compressed with gzip or deflate |
//! | `tls` | no | the client's certificate as a scope: `scope::certificate` |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

mod answer;
mod call;
pub mod codes;
pub mod fingerprint;
pub mod key;
mod layer;
mod method;
mod refusal;
pub mod reply;
mod request;
pub mod scope;
pub mod service;

/// The guide. Its examples run as tests.
#[doc = include_str!("../../docs/grpc.md")]
pub mod guide {}

pub use self::{layer::GrpcLayer, method::ClientStreams};

/// An error of any kind.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
