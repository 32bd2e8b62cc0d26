//! The consumers of the examples, on the brokers themselves: each order is paid out once, however often it is delivered.
//!
//! Each broker is started by the tests, on free ports of the loopback and in a temporary folder, and ended by its own
//! number. What is consumed is consumed by processes of its own, which can be killed.

#[allow(dead_code)]
#[path = "../sql/folder.rs"]
mod folder;
#[allow(dead_code)]
#[path = "../../examples/nats.rs"]
mod nats;
mod on_nats;
mod on_rabbitmq;
mod process;
#[allow(dead_code)]
#[path = "../../examples/rabbitmq.rs"]
mod rabbitmq;
mod scenarios;
mod server;
