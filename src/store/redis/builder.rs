//! Connecting. Every way ends in `finish`, which checks the servers (`connection/server`) and begins to watch their
//! settings.
//!
//! | how | what is behind it |
//! | --- | --- |
//! | `connect(url)` | by the scheme: one server, a cluster, or the master that sentinels name |
//! | `connect_client`, `connect_cluster`, `connect_sentinels` | the same with a client of the application's |
//! | `with_connection` | a connection of the application's, which it maintains itself; without messages |

use std::{fmt, sync::Arc, time::Duration};

use redis::{
    Client, ConnectionAddr, IntoConnectionInfo, RedisError,
    aio::ConnectionLike,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use crate::value::{StoreError, StoreErrorKind};

use super::{
    RedisShared, RedisStore,
    compared::{Abilities, OwnClaims},
    connection::{Limits, ManagedConnection, Target, Transport, resp3_client, server, tls},
    key_prefix::KeyPrefix,
    notifications::Notifications,
};

/// The time after which the operating system considers a connection without any reply dead.
const DEAD_AFTER: Duration = Duration::from_secs(15);

/// Builds a [`RedisStore`].
#[must_use = "a store is made by `connect`"]
pub struct RedisStoreBuilder {
    prefix: KeyPrefix,
    limits: Limits,
    certificates: tls::Certificates,
}

impl RedisStoreBuilder {
    pub(super) fn new() -> Self {
        let limits = Limits { connect: Duration::from_secs(2), command: Duration::from_secs(2) };
        Self { prefix: KeyPrefix::root(), limits, certificates: tls::Certificates::none() }
    }

    /// Sets a namespace, which keeps the records apart from those of other applications on the same server. Default:
    /// none.
    ///
    /// The namespace is the same as that of [`RedisStore::namespace`].
    pub fn namespace(self, name: &str) -> Self {
        Self { prefix: self.prefix.within(name), ..self }
    }

    /// Sets how long it may take to get a connection. Default: two seconds.
    pub fn connect_timeout(self, limit: Duration) -> Self {
        Self { limits: Limits { connect: limit, ..self.limits }, ..self }
    }

    /// Sets how long the server may take to answer. Default: two seconds.
    ///
    /// A call takes one round trip, two if a record is running or was released, three if it is taken over. The layer
    /// bounds the whole call by its own [store timeout](crate::IdempotencyLayer::store_timeout), which may be shorter.
    /// A connection on which nothing is answered is replaced long before either has passed.
    pub fn command_timeout(self, limit: Duration) -> Self {
        Self { limits: Limits { command: limit, ..self.limits }, ..self }
    }

    /// Sets the certificate authorities to trust, one or more certificates in PEM, instead of those of the operating
    /// system.
    ///
    /// The setting is for `connect` with a URL of `rediss://`, `rediss-cluster://` or `rediss-sentinel://`; a client of
    /// the application's has certificates of its own.
    #[cfg(feature = "redis-tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-tls")))]
    pub fn root_certificates(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { certificates: self.certificates.with_roots(pem.into()), ..self }
    }

    /// Sets the certificate that is presented to a server that asks for one, as Redis does by default
    /// (`tls-auth-clients`): the certificate with the intermediate ones, and its private key, both in PEM. Default:
    /// none.
    #[cfg(feature = "redis-tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-tls")))]
    pub fn client_certificate(self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self { certificates: self.certificates.with_client(chain.into(), key.into()), ..self }
    }

    /// Connects to the server of a URL: `redis://user:password@host:6379/0`, `rediss://…` with the feature `redis-tls`,
    /// or `unix:///path`.
    ///
    /// With the feature `redis-cluster`, the URL may name some of the servers of a cluster:
    /// `redis-cluster://user:password@host:6379,host:6379`, or `rediss-cluster://…`. A cluster has database 0 only.
    ///
    /// With the feature `redis-sentinel`, the URL may name a master that sentinels monitor:
    /// `redis-sentinel://user:password@host:26379,host:26379/name`, or `rediss-sentinel://…`. User and password are
    /// those of the servers; if the sentinels have their own, use `connect_sentinels`.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is invalid or needs a feature that is not enabled; if the server does not answer,
    /// refuses the user, or is older than Redis 7.0; if the server belongs to a cluster and the URL does not name one;
    /// if only one end uses TLS, or if one end does not trust the other's certificate. No error shows the URL.
    pub async fn connect(self, url: &str) -> Result<RedisStore, StoreError> {
        super::connection::check(url)?;
        self.certificates.check(url)?;
        #[cfg(feature = "redis-cluster")]
        if let Some(servers) = cluster_urls(url) {
            return self.connect_servers(servers).await;
        }
        #[cfg(feature = "redis-sentinel")]
        if let Some(url) = super::connection::Url::read(url) {
            let client = || url.client(with_keepalive(TcpSettings::default()), &self.certificates);
            let clients = client().and_then(|first| Ok([first, client()?]));
            let clients = clients.map_err(|error| misconfigured(&error, "the URL of Redis Sentinel"))?;
            return self.connect_master(clients).await;
        }
        let info = url.into_connection_info().and_then(|info| self.certificates.apply_to_client(info));
        let info = info.map_err(|error| misconfigured(&error, "the URL of Redis"))?;
        let settings = with_keepalive(info.tcp_settings().clone());
        let client = resp3_client(&info.set_tcp_settings(settings));
        self.connect_client(client.map_err(|error| misconfigured(&error, "the URL of Redis"))?).await
    }

    /// Connects to the master that sentinels name, with a client of the application's for masters, and to the next
    /// master if it is replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if no sentinel or no master answers, or if the master is older than Redis 7.0.
    #[cfg(feature = "redis-sentinel")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-sentinel")))]
    pub async fn connect_sentinels(self, client: redis::sentinel::SentinelClient) -> Result<RedisStore, StoreError> {
        self.connect_master([client]).await
    }

    /// Connects to the master that sentinels name.
    #[cfg(feature = "redis-sentinel")]
    async fn connect_master(
        self,
        clients: impl IntoIterator<Item = redis::sentinel::SentinelClient>,
    ) -> Result<RedisStore, StoreError> {
        let master = Arc::new(super::connection::SentinelMaster::new(clients));
        let target = || Target::Sentinels(Arc::clone(&master));
        let transport = Transport::Managed(Arc::new(ManagedConnection::new(target(), self.limits)));
        let notifications = Notifications::new(Some(target()), self.limits);
        self.finish(transport, notifications, "the master of sentinels".into()).await
    }

    /// Connects to a cluster with a client of the application's.
    ///
    /// With the third version of the protocol (RESP3), waiting requests are woken by messages; otherwise their records
    /// are polled every quarter of a second. The client retries commands if a server is unavailable or a key moves;
    /// three retries are enough, with pauses of 20 to 200 milliseconds. By default the client pauses for 1.28 seconds
    /// and more, up to sixteen times.
    ///
    /// # Errors
    ///
    /// Returns an error if no server can be reached, or if the servers are ones that the store cannot work with; see
    /// [`connect`](Self::connect).
    #[cfg(feature = "redis-cluster")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-cluster")))]
    pub async fn connect_cluster(self, client: redis::cluster::ClusterClient) -> Result<RedisStore, StoreError> {
        let transport = Transport::Cluster(super::connection::Cluster::connect(client.clone(), self.limits).await?);
        let notifications = Notifications::in_cluster(client, self.limits);
        self.finish(transport, notifications, "a cluster".into()).await
    }

    /// Connects to a cluster by the addresses of some of its servers.
    #[cfg(feature = "redis-cluster")]
    async fn connect_servers(self, servers: Vec<String>) -> Result<RedisStore, StoreError> {
        let settings = with_keepalive(TcpSettings::default());
        let builder = self.certificates.apply_to_cluster(redis::cluster::ClusterClientBuilder::new(servers));
        let client = builder
            .use_protocol(redis::ProtocolVersion::RESP3)
            .tcp_settings(settings)
            .retries(3)
            .min_retry_wait(20)
            .max_retry_wait(200)
            .build()
            .map_err(|error| misconfigured(&error, "the URL of the Redis cluster"))?;
        self.connect_cluster(client).await
    }

    /// Connects with a client of the application's, and its settings for the socket, the protocol and TLS.
    ///
    /// With the third version of the protocol (RESP3), it is noticed at once if an unused connection breaks.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be reached, or if it is one that the store cannot work with; see
    /// [`connect`](Self::connect).
    pub async fn connect_client(self, client: Client) -> Result<RedisStore, StoreError> {
        tls::prepare(client.get_connection_info().addr());
        let resp3_client =
            resp3_client(client.get_connection_info()).map_err(|error| misconfigured(&error, "the client of Redis"))?;
        let address = display_address(client.get_connection_info().addr());
        let transport =
            Transport::Managed(Arc::new(ManagedConnection::new(Target::One(Box::new(client)), self.limits)));
        let notifications = Notifications::new(Some(Target::One(Box::new(resp3_client))), self.limits);
        self.finish(transport, notifications, address).await
    }

    /// Uses a connection of the application's, which has to reconnect by itself if it breaks: a `ConnectionManager`
    /// does, a `MultiplexedConnection` does not.
    ///
    /// Such a connection receives no messages, so the record of a running request that others wait for is polled every
    /// quarter of a second.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not answer, or if it is one that the store cannot work with; see
    /// [`connect`](Self::connect).
    pub async fn with_connection<C>(self, connection: C) -> Result<RedisStore, StoreError>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        let transport = Transport::Provided(Box::new(connection), self.limits.command);
        let notifications = Notifications::new(None, self.limits);
        self.finish(transport, notifications, "the application's connection".into()).await
    }

    /// Checks the servers and creates the store.
    async fn finish(
        self,
        transport: Transport,
        notifications: Notifications,
        address: Box<str>,
    ) -> Result<RedisStore, StoreError> {
        let concerns = Box::pin(server::check(&transport)).await?;
        let abilities = Abilities::new(concerns.as_ref().map(server::Concerns::comparing).unwrap_or_default());
        let own_claims = OwnClaims::default();
        let shared = Arc::new(RedisShared { transport, notifications, abilities, own_claims, address });
        if let Some(concerns) = concerns {
            server::monitor(&shared, concerns);
        }
        Ok(RedisStore { shared, prefix: self.prefix })
    }
}

/// Omits the certificates, which may include a private key.
impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("namespace", &self.prefix.text())
            .field("connect_timeout", &self.limits.connect)
            .field("command_timeout", &self.limits.command)
            .finish_non_exhaustive()
    }
}

/// Returns socket settings with which it is noticed if the other end is gone.
fn with_keepalive(settings: TcpSettings) -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(DEAD_AFTER / 3).with_interval(DEAD_AFTER / 3);
    let settings = settings.set_nodelay(true).set_keepalive(keepalive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let settings = settings.set_user_timeout(DEAD_AFTER);
    settings
}

/// Returns the URLs of the servers that the URL of a cluster names.
#[cfg(feature = "redis-cluster")]
fn cluster_urls(url: &str) -> Option<Vec<String>> {
    let (scheme, rest) = url.split_once("-cluster://")?;
    // A password may contain commas; a host does not.
    let (user, hosts) =
        rest.rsplit_once('@').map_or((String::new(), rest), |(user, hosts)| (format!("{user}@"), hosts));
    matches!(scheme, "redis" | "rediss")
        .then(|| hosts.split(',').map(|host| format!("{scheme}://{user}{host}")).collect())
}

/// Returns the error of settings that the driver refuses.
fn misconfigured(error: &RedisError, what: &str) -> StoreError {
    // The driver's message may quote the URL, so it is not kept.
    let why = error.category();
    StoreError::new(StoreErrorKind::Misconfigured, format!("{what}: {why}")).without_effect()
}

/// Returns an address for logs.
fn display_address(address: &ConnectionAddr) -> Box<str> {
    address.to_string().into()
}

#[cfg(all(test, feature = "redis-cluster"))]
mod tests {
    use super::cluster_urls;

    #[test]
    fn the_url_of_a_cluster_names_servers() {
        let servers = |url| cluster_urls(url).unwrap_or_default();
        assert_eq!(servers("redis-cluster://a:1,b:2"), ["redis://a:1", "redis://b:2"]);
        assert_eq!(servers("rediss-cluster://me:p,@w@a:1,b:2"), ["rediss://me:p,@w@a:1", "rediss://me:p,@w@b:2"]);
        assert!(cluster_urls("redis://a:1").is_none() && cluster_urls("http-cluster://a").is_none());
    }
}
