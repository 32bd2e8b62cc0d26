//! `rediss://`: by rustls, or refused without the feature `redis-tls`.

#[cfg(not(feature = "redis-tls"))]
mod absent;
#[cfg(feature = "redis-tls")]
mod rustls;

#[cfg(not(feature = "redis-tls"))]
pub(in crate::store::redis) use self::absent::*;
#[cfg(feature = "redis-tls")]
pub(in crate::store::redis) use self::rustls::*;
