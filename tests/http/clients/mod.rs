//! Clients over real sockets, HTTP/1.1 and HTTP/2: those that leave, those that send too much, and those that behave.

mod client;
mod disconnects;
mod expect_continue;
mod kept_connections;
mod server;
mod streaming;
mod trailers;
mod wire;
