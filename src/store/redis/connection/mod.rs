//! Connections: to one server, to a cluster, to the master that Sentinel names; reconnecting, and time limits.
//!
//! - `transport`: what the verbs use, whatever is behind it; a command whose connection broke is sent once more here.
//! - `managed`: one connection that all callers share. `managed/dial` opens it, `managed/confirm` asks the sentinels,
//!   `managed/target` is where it leads. `managed/dial_state` and `managed/last_confirmed` are what these remember.
//! - `answers`: notices a connection on which nothing is answered.
//! - `wire`: limits, repetition, and how an answer is read.
//! - `sentinel`, `cluster`, `tls`, `url`: what the names say. `slot`: the arithmetic of cluster slots.
//! - `server`: checks a server when the store connects, and its settings every ten seconds.
//!
//! # What goes wrong, and who notices
//!
//! | what happens | noticed by | then |
//! | --- | --- | --- |
//! | the connection breaks | the command's error, or a push message | `managed` opens another; `transport` sends the command again |
//! | nothing is answered | `answers`, after a quarter of a second | another connection is opened beside it, and takes over if it stays silent |
//! | the server restarts | a refused connection | `dial` tries again, with pauses up to half a second |
//! | the master is replaced | `READONLY`, or `confirm` after a second of silence | `managed` gives the connection up and asks the source anew |
//! | a slot moves | `MOVED`, `ASK`, `TRYAGAIN` | the driver follows; a batch is sent command by command |
//! | a server of the cluster hangs | `answers`, for its part of the slots | `cluster/driver` connects anew |
//!
//! A caller sees none of this as long as it ends within the command timeout. After that the error says whether the
//! command may have taken effect, which decides whether its claim has to be released.

mod answers;
#[cfg(feature = "redis-cluster")]
mod cluster;
mod managed;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
pub(super) mod server;
mod transport;

pub(in crate::store::redis) mod slot;
pub(in crate::store::redis) mod tls;
mod url;
mod wire;

#[cfg(feature = "redis-cluster")]
pub(in crate::store::redis) use self::cluster::{Cluster, ClusterSubscriber};
#[cfg(feature = "redis-sentinel")]
pub(in crate::store::redis) use self::sentinel::{SentinelMaster, Url};
pub(in crate::store::redis) use self::{
    managed::{ManagedConnection, Target},
    transport::Transport,
    url::check,
    wire::{Limits, RetryOnDisconnect, ServerAddress, resp3_client, server_reply},
};
