//! Certificates and cryptography for `rediss://`. They are checked when the store connects, so that a wrong file is an
//! error there and not a refused connection later.

use std::{error::Error, io, sync::Arc};

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisError, TlsCertificates};
use rustls::{
    AlertDescription as Alert,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::value::{StoreError, StoreErrorKind};

/// The certificates that a connection trusts, and the one that it presents to the server.
pub(in crate::store::redis) struct Certificates(TlsCertificates);

impl Certificates {
    /// Returns the default: the operating system's authorities, no certificate of the client.
    pub(in crate::store::redis) fn none() -> Self {
        Self(TlsCertificates { client_tls: None, root_cert: None })
    }

    /// Trusts these authorities in place of the default ones.
    pub(in crate::store::redis) fn with_roots(self, roots: Vec<u8>) -> Self {
        Self(TlsCertificates { root_cert: Some(roots), ..self.0 })
    }

    /// Presents this certificate to servers.
    pub(in crate::store::redis) fn with_client(self, chain: Vec<u8>, key: Vec<u8>) -> Self {
        let own = ClientTlsConfig { client_cert: chain, client_key: key };
        Self(TlsCertificates { client_tls: Some(own), ..self.0 })
    }

    /// Refuses text in which the driver would find no certificates, and certificates that the URL does not use.
    pub(in crate::store::redis) fn check(&self, url: &str) -> Result<(), StoreError> {
        let encrypted = url.starts_with("rediss") || url.starts_with("valkeys");
        if encrypted {
            choose_cryptography();
        }
        let TlsCertificates { client_tls: own, root_cert: roots } = &self.0;
        let refuse = |why| Err(StoreError::new(StoreErrorKind::Misconfigured, why).without_effect());
        if roots.as_deref().is_some_and(|roots| !are_certificates(roots)) {
            return refuse("the root certificates for Redis are none in PEM");
        }
        if own.as_ref().is_some_and(|own| !are_certificates(&own.client_cert)) {
            return refuse("the client's certificate for Redis is none in PEM");
        }
        if own.as_ref().is_some_and(|own| PrivateKeyDer::from_pem_slice(&own.client_key).is_err()) {
            return refuse("the client's private key for Redis is none in PEM");
        }
        if self.configured().is_some() && !encrypted {
            return refuse("certificates for Redis take a URL of `rediss://`, and this one is of another scheme");
        }
        Ok(())
    }

    /// Applies the certificates to a connection to one server.
    pub(in crate::store::redis) fn apply_to_client(&self, info: ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        match self.configured() {
            Some(certificates) => Ok(Client::build_with_tls(info, certificates)?.get_connection_info().clone()),
            None => Ok(info),
        }
    }

    /// Applies the certificates to the connections to a cluster.
    #[cfg(feature = "redis-cluster")]
    pub(in crate::store::redis) fn apply_to_cluster(
        &self,
        builder: redis::cluster::ClusterClientBuilder,
    ) -> redis::cluster::ClusterClientBuilder {
        match self.configured() {
            Some(certificates) => builder.certs(certificates),
            None => builder,
        }
    }

    /// Applies the certificates to both connections: to the sentinels and to the server that they name.
    #[cfg(feature = "redis-sentinel")]
    pub(in crate::store::redis) fn apply_to_sentinels(
        &self,
        builder: redis::sentinel::SentinelClientBuilder,
    ) -> redis::sentinel::SentinelClientBuilder {
        match self.configured() {
            Some(certificates) => builder
                .set_client_to_sentinel_certificates(certificates.clone())
                .set_client_to_redis_certificates(certificates),
            None => builder,
        }
    }

    /// Returns the certificates, if there are any.
    fn configured(&self) -> Option<TlsCertificates> {
        (self.0.client_tls.is_some() || self.0.root_cert.is_some()).then(|| self.0.clone())
    }
}

/// Prepares TLS for a client of the application's.
pub(in crate::store::redis) fn prepare(address: &ConnectionAddr) {
    if matches!(address, ConnectionAddr::TcpTls { .. }) {
        choose_cryptography();
    }
}

/// Chooses a cryptography provider if the application has chosen none. If there are two, from other crates of the
/// application, rustls panics.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may be quicker, which is fine.
        let _ = ring::default_provider().install_default();
    }
}

/// Returns whether the text has at least one certificate in PEM, and only valid ones.
fn are_certificates(pem: &[u8]) -> bool {
    let mut any = false;
    CertificateDer::pem_slice_iter(pem).all(|certificate| {
        any = true;
        certificate.is_ok()
    }) && any
}

/// Returns the TLS fault, if that is why a connection was not established.
pub(in crate::store::redis) fn fault(error: &RedisError) -> Option<&'static str> {
    let source = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    let fault = source.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()?;
    Some(match fault {
        rustls::Error::InvalidCertificate(_) => "the certificate of Redis is not trusted, or not for this host",
        rustls::Error::InvalidMessage(_) => "this port of Redis does not speak TLS",
        rustls::Error::AlertReceived(
            Alert::AccessDenied
            | Alert::BadCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRequired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate,
        ) => "Redis does not accept the client's certificate, or wants one",
        rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(Alert::HandshakeFailure | Alert::ProtocolVersion) => {
            "Redis and this client have no kind of TLS in common"
        }
        _ => return None,
    })
}
