//! Calls of gRPC behind the layer, by tonic's own client and server.

mod bank;
mod codes;
mod deadlines;
mod messages;
mod refusals;
mod replays;
mod replies;
mod streams;
mod tls;
mod transactions;
mod wire;
