//! The substitute for `tls` without the feature: there are no certificates.
#![expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "with the feature there is something to do")]

use redis::{ConnectionAddr, ConnectionInfo, RedisError};

use crate::value::StoreError;

pub(super) struct Certificates;

impl Certificates {
    pub(super) fn none() -> Self {
        Self
    }

    pub(super) fn check(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    pub(super) fn of_one(&self, info: ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        Ok(info)
    }

    #[cfg(feature = "redis-cluster")]
    pub(super) fn of_cluster(
        &self,
        builder: redis::cluster::ClusterClientBuilder,
    ) -> redis::cluster::ClusterClientBuilder {
        builder
    }

    #[cfg(feature = "redis-sentinel")]
    pub(super) fn of_sentinels(
        &self,
        builder: redis::sentinel::SentinelClientBuilder,
    ) -> redis::sentinel::SentinelClientBuilder {
        builder
    }
}

pub(super) fn prepare(_: &ConnectionAddr) {}

pub(super) fn fault(_: &RedisError) -> Option<&'static str> {
    None
}
