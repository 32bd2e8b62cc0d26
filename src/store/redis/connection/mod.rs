//! Connections: to one server, to a cluster, to the master that Sentinel names; reconnecting, and time limits.

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
