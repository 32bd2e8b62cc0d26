//! The substitute for `tls` without the feature: there are no certificates.
#![expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "with the feature there is something to do")]

use redis::{ConnectionAddr, ConnectionInfo, RedisError};

use crate::value::StoreError;

/// No certificates. Its methods have the names of those with the feature.
pub(in crate::store::redis) struct Certificates;

impl Certificates {
    pub(in crate::store::redis) fn none() -> Self {
        Self
    }

    pub(in crate::store::redis) fn check(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    pub(in crate::store::redis) fn apply_to_client(&self, info: ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        Ok(info)
    }

    #[cfg(feature = "redis-cluster")]
    pub(in crate::store::redis) fn apply_to_cluster(
        &self,
        builder: redis::cluster::ClusterClientBuilder,
    ) -> redis::cluster::ClusterClientBuilder {
        builder
    }

    #[cfg(feature = "redis-sentinel")]
    pub(in crate::store::redis) fn apply_to_sentinels(
        &self,
        builder: redis::sentinel::SentinelClientBuilder,
    ) -> redis::sentinel::SentinelClientBuilder {
        builder
    }
}

pub(in crate::store::redis) fn prepare(_: &ConnectionAddr) {}

pub(in crate::store::redis) fn fault(_: &RedisError) -> Option<&'static str> {
    None
}
