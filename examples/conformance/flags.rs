//! The command line.

use std::{path::PathBuf, str::FromStr, time::Duration};

pub(crate) struct Flags {
    pub(crate) listen: String,
    pub(crate) store: String,
    pub(crate) namespace: String,
    pub(crate) retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) token_life: Duration,
    pub(crate) capacity: usize,
    pub(crate) effects: Option<PathBuf>,
    pub(crate) store_timeout: Duration,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".into(),
            store: "memory".into(),
            namespace: "conformance".into(),
            retention: Duration::from_secs(86_400),
            lease: Duration::from_secs(30),
            token_life: Duration::from_secs(300),
            capacity: 1_000_000,
            effects: None,
            store_timeout: Duration::from_secs(5),
        }
    }
}

impl Flags {
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self::default();
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or(format!("{flag} needs a value"));
            match &*flag {
                "--listen" => flags.listen = value()?,
                "--store" => flags.store = value()?,
                "--namespace" => flags.namespace = value()?,
                "--retention-ms" => flags.retention = millis(&flag, &value()?, 0)?,
                "--lease-ms" => flags.lease = millis(&flag, &value()?, 1)?,
                "--token-ttl-ms" => flags.token_life = millis(&flag, &value()?, 1)?,
                "--capacity" => flags.capacity = number(&flag, &value()?)?,
                "--effects" => flags.effects = Some(value()?.into()),
                "--store-timeout-ms" => flags.store_timeout = millis(&flag, &value()?, 0)?,
                _ => return Err(format!("{flag}: no such flag")),
            }
        }
        Ok(flags)
    }
}

fn millis(flag: &str, value: &str, least: u64) -> Result<Duration, String> {
    match number(flag, value)? {
        millis if millis >= least => Ok(Duration::from_millis(millis)),
        _ => Err(format!("{flag} {value}: {least} is the least")),
    }
}

fn number<T: FromStr>(flag: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{flag} {value}: a number is wanted"))
}
