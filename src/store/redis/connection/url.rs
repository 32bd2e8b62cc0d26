//! The schemes of URLs, and the feature that each needs.

use crate::value::{StoreError, StoreErrorKind};

/// The features that a URL may need.
#[derive(Clone, Copy)]
struct Features {
    /// `redis-tls`.
    tls: bool,
    cluster: bool,
    sentinel: bool,
}

impl Features {
    /// The features that are enabled.
    const ENABLED: Self = Self {
        tls: cfg!(feature = "redis-tls"),
        cluster: cfg!(feature = "redis-cluster"),
        sentinel: cfg!(feature = "redis-sentinel"),
    };
    const NONE: Self = Self { tls: false, cluster: false, sentinel: false };
    const TLS: Self = Self { tls: true, ..Self::NONE };
    const CLUSTER: Self = Self { cluster: true, ..Self::NONE };
    const SENTINEL: Self = Self { sentinel: true, ..Self::NONE };

    /// Adds TLS.
    const fn and_tls(self) -> Self {
        Self { tls: true, ..self }
    }

    /// Returns the names of the features that are needed but not enabled.
    fn missing(self, enabled: Self) -> Vec<&'static str> {
        let features = [
            (self.cluster && !enabled.cluster, "redis-cluster"),
            (self.sentinel && !enabled.sentinel, "redis-sentinel"),
            (self.tls && !enabled.tls, "redis-tls"),
        ];
        features.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, name)| name).collect()
    }
}

/// The schemes that `connect` accepts, and what each needs beside the feature `redis`.
const SCHEMES: [(&str, Features); 11] = [
    ("redis", Features::NONE),
    ("valkey", Features::NONE),
    ("unix", Features::NONE),
    ("redis+unix", Features::NONE),
    ("valkey+unix", Features::NONE),
    ("rediss", Features::TLS),
    ("valkeys", Features::TLS),
    ("redis-cluster", Features::CLUSTER),
    ("rediss-cluster", Features::CLUSTER.and_tls()),
    ("redis-sentinel", Features::SENTINEL),
    ("rediss-sentinel", Features::SENTINEL.and_tls()),
];

/// Refuses a URL whose scheme is not one of Redis, or needs a feature that is not enabled. The error contains only the
/// scheme, since the rest may contain a password.
pub(in crate::store::redis) fn check(url: &str) -> Result<(), StoreError> {
    check_with(url, Features::ENABLED)
}

/// Checks a URL against the features that are there.
fn check_with(url: &str, enabled: Features) -> Result<(), StoreError> {
    let refuse = |why: String| Err(StoreError::new(StoreErrorKind::Misconfigured, why).without_effect());
    let scheme = match url.split_once("://") {
        Some((scheme, _)) => scheme,
        // The URL of a socket may have fewer slashes.
        None if url.starts_with("unix:") => return Ok(()),
        None => return refuse("the URL of Redis has no scheme: it begins with `redis://`, for example".into()),
    };
    let Some((scheme, needed)) = SCHEMES.into_iter().find(|(known, _)| *known == scheme) else {
        return refuse(
            "the URL of Redis has a scheme that is not known: it begins with `redis://`, for example".into(),
        );
    };
    match *needed.missing(enabled) {
        [] => Ok(()),
        [feature] => refuse(format!("a URL of `{scheme}://` needs the feature `{feature}`")),
        [one, other, ..] => refuse(format!("a URL of `{scheme}://` needs the features `{one}` and `{other}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> Option<String> {
        check(url).err().map(|error| error.to_string())
    }

    #[test]
    fn a_url_without_a_scheme_is_told_what_it_lacks() {
        for url in ["localhost:6379", "127.0.0.1", "", "//host", "user:secret@host"] {
            assert!(refusal(url).is_some_and(|why| why.contains("redis://") && !why.contains("secret")), "{url}");
        }
        for url in ["http://host", "postgres://user:secret@host", "secret://host"] {
            assert!(refusal(url).is_some_and(|why| why.contains("redis://") && !why.contains("secret")), "{url}");
        }
    }

    #[test]
    fn a_url_whose_feature_is_missing_is_told_which() {
        let told = |scheme: &str, enabled| {
            let refusal =
                check_with(&format!("{scheme}://user:secret@host"), enabled).err().map(|error| error.to_string());
            let told = refusal.unwrap_or_default();
            told.strip_prefix(&format!("a URL of `{scheme}://` needs the ")).unwrap_or(&told).to_owned()
        };
        for (scheme, needed) in [
            ("rediss", "feature `redis-tls`"),
            ("valkeys", "feature `redis-tls`"),
            ("redis-cluster", "feature `redis-cluster`"),
            ("rediss-cluster", "features `redis-cluster` and `redis-tls`"),
            ("redis-sentinel", "feature `redis-sentinel`"),
            ("rediss-sentinel", "features `redis-sentinel` and `redis-tls`"),
        ] {
            assert_eq!(told(scheme, Features::NONE), needed);
            assert_eq!(told(scheme, Features { tls: true, cluster: true, sentinel: true }), "");
        }
        assert_eq!(told("rediss-cluster", Features::CLUSTER), "feature `redis-tls`");
        assert_eq!(told("rediss-sentinel", Features::TLS), "feature `redis-sentinel`");
        assert_eq!(told("redis", Features::NONE), "");
    }

    #[test]
    fn others_are_taken() {
        for url in ["redis://host", "valkey://host", "unix:///run/redis.sock", "unix:/run/redis.sock"] {
            assert_eq!(refusal(url), None);
        }
    }
}
