//! The URL of the store: its source, its parts, and how it is shown.

use std::{env, fs};

use crate::{arguments::Place, failure::Failure};

/// The environment variable that has the URL.
pub(crate) const VARIABLE: &str = "TOWER_IDEMPOTENCY_URL";

/// What a password is shown as.
const CONCEALED: &str = "***";

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    Postgres,
    MySql,
    Sqlite,
}

/// The URL of a store. It is shown without its password.
pub(crate) struct StoreUrl {
    text: String,
    pub(crate) kind: Kind,
}

/// The parts of a URL.
struct Parts<'a> {
    scheme: &'a str,
    /// User and password with the `@`, if there are any.
    user: &'a str,
    hosts: &'a str,
    path: &'a str,
}

impl StoreUrl {
    /// Finds the URL: in an argument, in a file, or in the environment.
    pub(crate) fn find(place: &Place) -> Result<Self, Failure> {
        let text = match (&place.url, &place.url_file) {
            (Some(url), _) => {
                let url = Self::new(url, place.cluster)?;
                if !url.passwords().is_empty() {
                    return Err(Failure::Usage(format!(
                        "an argument is visible to every process of this machine: put a URL with a password into \
                         {VARIABLE} or into a file for --url-file"
                    )));
                }
                return Ok(url);
            }
            (None, Some(file)) => fs::read_to_string(file)
                .map_err(|error| Failure::Usage(format!("--url-file {}: {error}", file.display())))?,
            (None, None) => env::var(VARIABLE).map_err(|_| {
                Failure::Usage(format!("there is no URL of a store: set {VARIABLE}, or name a file with --url-file"))
            })?,
        };
        Self::new(text.trim(), place.cluster)
    }

    /// Reads a URL. `cluster` says that the servers belong to a Redis Cluster, as several servers always do.
    pub(crate) fn new(text: &str, cluster: bool) -> Result<Self, Failure> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(Failure::Usage("the URL of the store has no scheme, such as `redis://`".into()));
        };
        let kind = match scheme {
            "redis" | "rediss" | "valkey" | "valkeys" | "unix" | "redis+unix" | "valkey+unix" | "redis-cluster"
            | "rediss-cluster" | "redis-sentinel" | "rediss-sentinel" => Kind::Redis,
            "postgres" | "postgresql" => Kind::Postgres,
            "mysql" | "mariadb" => Kind::MySql,
            "sqlite" => Kind::Sqlite,
            "memory" => {
                return Err(Failure::Usage("a memory store lives in its process, and no other can reach it".into()));
            }
            _ => {
                return Err(Failure::Usage(
                    "the URL of the store has an unknown scheme: known are redis, rediss, redis-cluster, \
                     redis-sentinel, unix, postgres, mysql, mariadb and sqlite"
                        .into(),
                ));
            }
        };
        let single = matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys");
        let hosts = rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts);
        if cluster && kind != Kind::Redis {
            return Err(Failure::Usage("--cluster is for Redis".into()));
        }
        let text = if single && (cluster || hosts.contains(',')) {
            let secure = if matches!(scheme, "rediss" | "valkeys") { "rediss" } else { "redis" };
            format!("{secure}-cluster:{}", rest.trim_end_matches('/'))
        } else {
            text.to_owned()
        };
        Ok(Self { text, kind })
    }

    /// Returns the URL with its password, for a driver.
    pub(crate) fn exposed(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.parts().scheme.ends_with("-cluster")
    }

    pub(crate) fn is_sentinel(&self) -> bool {
        self.parts().scheme.ends_with("-sentinel")
    }

    /// Returns the name of the master that sentinels watch.
    pub(crate) fn sentinel_master(&self) -> Option<&str> {
        let Parts { path, .. } = self.parts();
        self.is_sentinel().then(|| path.split('/').next().unwrap_or_default())
    }

    /// Returns the hosts with their ports; the path of a socket or a file counts as one.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let Parts { hosts, path, .. } = self.parts();
        if hosts.is_empty() { vec![format!("/{path}")] } else { hosts.split(',').map(ToOwned::to_owned).collect() }
    }

    /// Returns the URL of one of several servers of Redis, or the URL itself if it names one.
    pub(crate) fn server(&self, address: &str) -> String {
        let Parts { scheme, user, .. } = self.parts();
        match scheme.split_once('-') {
            // The user is that of the servers, not of the sentinels.
            Some((single, "sentinel")) if self.hosts().iter().any(|host| host == address) => {
                format!("{single}://{address}")
            }
            Some((single, _)) => format!("{single}://{user}{address}"),
            None => self.text.clone(),
        }
    }

    fn parts(&self) -> Parts<'_> {
        let (scheme, rest) = self.text.split_once(':').unwrap_or_default();
        let Some(rest) = rest.strip_prefix("//") else { return Parts { scheme, user: "", hosts: "", path: rest } };
        let (user, rest) = rest.rfind('@').map_or(("", rest), |at| rest.split_at(at + 1));
        let (hosts, path) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
        Parts { scheme, user, hosts, path }
    }

    /// Returns the URL without passwords.
    pub(crate) fn shown(&self) -> String {
        self.conceal(self.text.clone())
    }

    /// Takes the passwords out of a text, such as an error of a driver.
    pub(crate) fn conceal(&self, mut text: String) -> String {
        for (around, password) in self.passwords() {
            let bare = password.trim_start_matches(around);
            // In the URL, and wherever else a longer password is named.
            text = text.replace(&format!("{around}{bare}"), &format!("{around}{CONCEALED}"));
            if bare.len() >= 4 {
                text = text.replace(bare, CONCEALED);
            }
        }
        text
    }

    /// Returns the passwords, each with the character in front of it and that character.
    fn passwords(&self) -> Vec<(char, &str)> {
        if self.kind == Kind::Sqlite {
            return Vec::new();
        }
        let Some((_, rest)) = self.text.split_once("://") else { return Vec::new() };
        let (user, behind) = rest.rsplit_once('@').unwrap_or(("", rest));
        let password = user.find(':').map(|at| (':', &user[at..])).filter(|(_, text)| text.len() > 1);
        let query = behind.split_once('?').map_or("", |(_, query)| query);
        let named = query.split('&').filter_map(|pair| {
            let at = pair.find('=')?;
            let (name, value) = pair.split_at(at);
            (name.to_ascii_lowercase().contains("pass") && value.len() > 1).then_some(('=', value))
        });
        password.into_iter().chain(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> StoreUrl {
        StoreUrl::new(text, false).unwrap()
    }

    #[test]
    fn urls_are_shown_without_passwords() {
        for (text, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://:s3cret@host/0", "redis://:***@host/0"),
            ("rediss://ann:s@ss@host", "rediss://ann:***@host"),
            ("postgres://app:a:b@db/shop", "postgres://app:***@db/shop"),
            (
                "postgres://app@db/shop?password=hidden&sslmode=require",
                "postgres://app@db/shop?password=***&sslmode=require",
            ),
            ("redis-cluster://me:p,@a:1,b:2", "redis-cluster://me:***@a:1,b:2"),
            ("sqlite:/data/a@b:c.db", "sqlite:/data/a@b:c.db"),
        ] {
            assert_eq!(url(text).shown(), shown);
        }
    }

    #[test]
    fn a_password_is_taken_out_of_a_drivers_error() {
        let told = url("redis://ann:s3cret@host").conceal("wrong: `s3cret` of ann".into());
        assert_eq!(told, "wrong: `***` of ann");
    }

    #[test]
    fn several_servers_are_a_cluster() {
        assert_eq!(url("redis://a:1,b:2").exposed(), "redis-cluster://a:1,b:2");
        assert_eq!(url("rediss://me:p,p@a:1").exposed(), "rediss://me:p,p@a:1");
        assert_eq!(StoreUrl::new("rediss://a:1", true).unwrap().exposed(), "rediss-cluster://a:1");
        assert!(StoreUrl::new("postgres://a", true).is_err());
    }

    #[test]
    fn servers_have_urls_of_their_own() {
        let cluster = url("rediss://me:p@a:1,b:2");
        assert_eq!(
            (cluster.hosts(), cluster.server("c:3")),
            (vec!["a:1".into(), "b:2".into()], "rediss://me:p@c:3".into())
        );
        let sentinels = url("redis-sentinel://me:p@a:1,b:2/shop/3");
        assert_eq!(sentinels.sentinel_master(), Some("shop"));
        let servers = [sentinels.server("a:1"), sentinels.server("c:3")];
        assert_eq!(servers, ["redis://a:1", "redis://me:p@c:3"]);
        assert_eq!(url("redis://a:1/3").server("a:1"), "redis://a:1/3");
        assert_eq!(url("unix:///run/redis.sock").hosts(), ["/run/redis.sock"]);
    }

    #[test]
    fn wrong_urls_are_refused_without_being_shown() {
        for text in ["", "host", "http://u:secret@host", "memory:", "secret://host"] {
            let error = StoreUrl::new(text, false).err().unwrap();
            assert_eq!(error.code(), 2);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
