//! Scopes of calls: from the metadata, from the message, or from the client's certificate.
//!
//! For what the authentication left in the request's extensions, use [`tower_idempotency::scope::extension`]; an
//! interceptor of tonic comes too late for that unless it is outside the layer.

use prost::Message;
#[cfg(feature = "tls")]
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use tower_idempotency::scope::{self, ScopeExtractor};

use crate::request;

/// Takes the scope from the metadata. It has to be metadata that something outside this layer has set or checked.
///
/// # Panics
///
/// Panics if `name` is not a name of metadata.
#[track_caller]
pub fn metadata(name: &str) -> ScopeExtractor {
    scope::header(name)
}

/// Takes the scope out of the message with a closure. `None` and an empty text mean that there is none, and so does a
/// message that cannot be decoded.
///
/// A scope that a client writes into the message by itself protects nobody: take one that something else has checked.
pub fn message<M: Message + Default + 'static>(
    scope: impl Fn(&M) -> Option<String> + Send + Sync + 'static,
) -> ScopeExtractor {
    scope::from_body(move |_, body| scope(&M::decode(request::message_of(body)?).ok()?))
}

/// Takes the client's certificate as the scope: its SHA-256, in hexadecimal digits.
///
/// The server has to ask for certificates (`ServerTlsConfig::client_ca_root`). A connection without one has no scope, so
/// its calls are refused. A client that gets a new certificate is another caller: for one that stays, such as its
/// subject, use [`certificate_with`].
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub fn certificate() -> ScopeExtractor {
    use sha2::{Digest, Sha256};
    use std::fmt::Write;

    certificate_with(|der| {
        Some(Sha256::digest(der).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}"); // into a string: it cannot fail
            hex
        }))
    })
}

/// Takes the scope out of the client's certificate with a closure that sees its DER. `None` and an empty text mean that
/// there is none.
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub fn certificate_with(scope: impl Fn(&[u8]) -> Option<String> + Send + Sync + 'static) -> ScopeExtractor {
    scope::from_fn(move |parts| {
        let certificates = parts.extensions.get::<TlsConnectInfo<TcpConnectInfo>>()?.peer_certs()?;
        scope(certificates.first()?)
    })
}
