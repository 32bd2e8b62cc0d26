//! Where a connection leads: to one server, or to the one that sentinels name at the moment.

use std::sync::Arc;

use redis::{AsyncConnectionConfig, Client, ProtocolVersion, RedisError, aio::MultiplexedConnection};

/// The target of a connection.
pub(in crate::store::redis) enum Target {
    One(Box<Client>),
    #[cfg(feature = "redis-sentinel")]
    Sentinels(Arc<crate::store::redis::connection::sentinel::SentinelMaster>),
}

impl Target {
    /// Connects, and also returns the address of the server.
    pub(in crate::store::redis) async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> Result<(MultiplexedConnection, Arc<str>), RedisError> {
        match self {
            Self::One(client) => connect(client, config).await,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(master) => connect(&master.master().await?, config).await,
        }
    }

    /// Returns whether sentinels determine the target.
    pub(in crate::store::redis) fn has_sentinels(&self) -> bool {
        match self {
            Self::One(_) => false,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(_) => true,
        }
    }

    /// Queries the sentinels for the address of the master.
    #[cfg_attr(not(feature = "redis-sentinel"), expect(clippy::unused_async, reason = "sentinels are asked"))]
    pub(in crate::store::redis) async fn address(&self) -> Result<Option<Arc<str>>, RedisError> {
        match self {
            Self::One(_) => Ok(None),
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(master) => master.master().await.map(|client| Some(address(&client))),
        }
    }

    /// Returns whether a closed connection is reported.
    pub(in crate::store::redis) fn supports_push(&self) -> bool {
        match self {
            Self::One(client) => client.get_connection_info().redis_settings().protocol() != ProtocolVersion::RESP2,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(_) => true,
        }
    }
}

/// Opens a connection with a client.
async fn connect(
    client: &Client,
    config: &AsyncConnectionConfig,
) -> Result<(MultiplexedConnection, Arc<str>), RedisError> {
    Ok((client.get_multiplexed_async_connection_with_config(config).await?, address(client)))
}

/// Returns the address of a client's server.
fn address(client: &Client) -> Arc<str> {
    client.get_connection_info().addr().to_string().into()
}
