use crate::value::{StoreError, StoreErrorKind};

/// What `connect` takes, and the feature that each needs beside `redis`.
const SCHEMES: [(&str, Option<&str>); 11] = [
    ("redis", None),
    ("valkey", None),
    ("unix", None),
    ("redis+unix", None),
    ("valkey+unix", None),
    ("rediss", TLS),
    ("valkeys", TLS),
    ("redis-cluster", CLUSTER),
    ("rediss-cluster", CLUSTER),
    ("redis-sentinel", SENTINEL),
    ("rediss-sentinel", SENTINEL),
];

const TLS: Option<&str> = if cfg!(feature = "redis-tls") { None } else { Some("redis-tls") };
const CLUSTER: Option<&str> = if cfg!(feature = "redis-cluster") { None } else { Some("redis-cluster") };
const SENTINEL: Option<&str> = if cfg!(feature = "redis-sentinel") { None } else { Some("redis-sentinel") };

/// Refuses a URL whose scheme is none of Redis, or needs a feature that is not there. What is said of it has no more than
/// its scheme, since a password may stand in the rest.
pub(super) fn check(url: &str) -> Result<(), StoreError> {
    let refuse = |why: String| Err(StoreError::new(StoreErrorKind::Misconfigured, why).without_effect());
    let scheme = match url.split_once("://") {
        Some((scheme, _)) => scheme,
        // A socket may be named with fewer slashes.
        None if url.starts_with("unix:") => return Ok(()),
        None => return refuse("the URL of Redis has no scheme: it begins with `redis://`, for example".into()),
    };
    let Some((scheme, missing)) = SCHEMES.into_iter().find(|(known, _)| *known == scheme) else {
        return refuse(
            "the URL of Redis has a scheme that is not known: it begins with `redis://`, for example".into(),
        );
    };
    let encrypted = if scheme.starts_with("rediss") { TLS } else { None };
    let missing: Vec<_> = [missing, encrypted.filter(|_| missing != TLS)].into_iter().flatten().collect();
    match *missing {
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
        let schemes = [
            ("rediss", &[TLS][..]),
            ("valkeys", &[TLS]),
            ("redis-cluster", &[CLUSTER]),
            ("rediss-cluster", &[CLUSTER, TLS]),
            ("redis-sentinel", &[SENTINEL]),
            ("rediss-sentinel", &[SENTINEL, TLS]),
        ];
        for (scheme, features) in schemes {
            let refusal = refusal(&format!("{scheme}://user:secret@host"));
            let missing: Vec<_> = features.iter().flatten().collect();
            assert_eq!(refusal.is_none(), missing.is_empty(), "{scheme}");
            let told = refusal.unwrap_or_default();
            assert!(missing.iter().all(|feature| told.contains(&format!("`{feature}`"))), "{told}");
        }
    }

    #[test]
    fn others_are_taken() {
        for url in ["redis://host", "valkey://host", "unix:///run/redis.sock", "unix:/run/redis.sock"] {
            assert_eq!(refusal(url), None);
        }
    }
}
