//! Clients over real sockets, HTTP/1.1 and HTTP/2: those that leave, those that send too much, and those that behave.

mod client;
mod expecting;
mod keeping_on;
mod leaving;
mod site;
mod streaming;
mod trailers;
mod wire;
