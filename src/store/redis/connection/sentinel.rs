//! The master behind Redis Sentinel: its URL, and the question which server it is.
//!
//! The answer of a sentinel is used only if the server itself says that it is a master, since sentinels may lag behind
//! a failover.

use redis::{
    Client, IntoConnectionInfo, RedisError, TlsMode,
    io::tcp::TcpSettings,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use tokio::sync::Mutex;

use super::{tls::Certificates, wire::resp3_client};

/// A master that sentinels know, whichever server it is at the moment.
///
/// With several clients the master can be queried again before an answer has come: a client waits for a second for a
/// master that hangs, although another may have been named meanwhile.
pub(in crate::store::redis) struct SentinelMaster(Vec<Mutex<SentinelClient>>);

impl SentinelMaster {
    /// Creates it with clients that all ask the same sentinels.
    pub(in crate::store::redis) fn new(clients: impl IntoIterator<Item = SentinelClient>) -> Self {
        Self(clients.into_iter().map(Mutex::new).collect())
    }

    /// Queries the sentinels for the master. Their answer is used only if the server itself reports that it is a
    /// master.
    pub(in crate::store::redis) async fn master(&self) -> Result<Client, RedisError> {
        let mut client = match (self.0.iter().find_map(|client| client.try_lock().ok()), self.0.first()) {
            (Some(client), _) => client,
            (None, Some(first)) => first.lock().await,
            (None, None) => return Err((redis::ErrorKind::InvalidClientConfig, "no client for sentinels").into()),
        };
        resp3_client(client.async_get_client().await?.get_connection_info())
    }
}

/// The parts of the URL of a master behind sentinels: `redis-sentinel://user:password@host:26379,host:26379/name/0`.
pub(in crate::store::redis) struct Url<'a> {
    scheme: &'a str,
    user: &'a str,
    hosts: &'a str,
    name: &'a str,
    database: &'a str,
}

impl<'a> Url<'a> {
    /// Reads a URL; `None` if its scheme is not one of sentinels.
    pub(in crate::store::redis) fn read(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("-sentinel://")?;
        let (user, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, database) = path.split_once('/').unwrap_or((path, "0"));
        matches!(scheme, "redis" | "rediss").then_some(Self { scheme, user, hosts, name, database })
    }

    /// Returns the client. User and password are those of the servers, not of the sentinels.
    pub(in crate::store::redis) fn client(
        &self,
        settings: TcpSettings,
        certificates: &Certificates,
    ) -> Result<SentinelClient, RedisError> {
        let Self { scheme, user, hosts, name, database } = self;
        let at = if user.is_empty() { "" } else { "@" };
        let server = format!("{scheme}://{user}{at}localhost/{database}").into_connection_info()?;
        let sentinels = hosts.split(',').map(|host| {
            let sentinel = format!("{scheme}://{host}").into_connection_info()?;
            Ok(sentinel.addr().clone())
        });
        let sentinels = sentinels.collect::<Result<Vec<_>, RedisError>>()?;
        let mut builder = SentinelClientBuilder::new(sentinels, name, SentinelServerType::Master)?
            .set_client_to_redis_tcp_settings(settings.clone())
            .set_client_to_sentinel_tcp_settings(settings)
            .set_client_to_redis_db(server.redis_settings().db());
        if let Some(user) = server.redis_settings().username() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = server.redis_settings().password() {
            builder = builder.set_client_to_redis_password(password);
        }
        if *scheme == "rediss" {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
        }
        certificates.apply_to_sentinels(builder).build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let url = Url::read("redis-sentinel://me:p/w@a:1,b:2/shop/3");
        let parts = url.map(|url| (url.scheme, url.user, url.hosts, url.name, url.database));
        assert_eq!(parts, Some(("redis", "me:p/w", "a:1,b:2", "shop", "3")));
        assert!(Url::read("redis://a:1/shop").is_none());
    }
}
