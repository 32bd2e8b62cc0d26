//! Connections: to one server, to a cluster, to the master that Sentinel names; reconnecting, and time limits.
//!
//! - `line`: what the verbs use, whatever is behind it; a command whose connection broke is sent once more here.
//! - `link`: one connection that all callers share. `link/dial` opens it, `link/confirm` asks the sentinels,
//!   `link/source` is where it leads.
//! - `silence`: notices a connection on which nothing is answered.
//! - `sentinel`, `cluster`, `tls`, `url`: what the names say. `slot`: the arithmetic of cluster slots.
//! - `server`: checks a server when the store connects, and its settings every ten seconds.

#[cfg(feature = "redis-cluster")]
mod cluster;
mod line;
mod link;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
pub(super) mod server;
mod silence;
pub(in crate::store::redis) mod slot;
pub(in crate::store::redis) mod tls;
mod url;

#[cfg(feature = "redis-cluster")]
pub(in crate::store::redis) use self::cluster::{Cluster, Subscriber};
#[cfg(feature = "redis-sentinel")]
pub(in crate::store::redis) use self::sentinel::{Url, Watched};
pub(in crate::store::redis) use self::{
    line::{Line, Node, RetryOnDisconnect, hearing, said},
    link::{Limits, Link, Source},
    url::check,
};
