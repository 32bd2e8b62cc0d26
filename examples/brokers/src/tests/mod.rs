//! The consumers on the brokers themselves: each order is paid out once, however often it is delivered.
//!
//! Each broker is started by the tests, on free ports of the loopback and in a temporary folder, and ended by its own
//! number. What is consumed is consumed by processes of its own, which can be killed.

#[allow(dead_code)]
#[path = "../../../../tests/sql/folder.rs"]
mod folder;
mod on_nats;
mod on_rabbitmq;
mod process;
mod scenarios;
mod server;
