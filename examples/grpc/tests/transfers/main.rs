//! The server in a process of its own, behind a proxy that loses answers, delays and cuts: each transfer is made once,
//! whichever store the records are in and whichever client asks.
//!
//! `TRANSFERS` is how many calls a storm has, 10,000 if it is not set, or 2,000 if processes are killed.

mod clients;
#[allow(dead_code)]
#[path = "../../../../tests/sql/folder.rs"]
mod folder;
mod process;
mod proxy;
#[allow(dead_code)]
#[path = "../../../../tests/redis/server.rs"]
mod redis;
mod scenarios;
#[allow(dead_code)]
#[path = "../../../../tests/sql/server.rs"]
mod server;
mod stand;
mod storms;
