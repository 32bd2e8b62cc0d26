//! How often the handler ran.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

pub(crate) struct Executions {
    by_operation: Mutex<BTreeMap<String, u64>>,
    effects: Option<File>,
    /// Distinguishes the executions of this process from those of any other.
    process: String,
    total: AtomicU64,
}

pub(crate) struct Execution {
    /// The number of this execution for its route and key in this process.
    pub(crate) number: u64,
    /// A value that no other execution has.
    pub(crate) id: String,
}

impl Executions {
    pub(crate) fn new(effects: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().append(true).create(true).open(path);
        let started = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Ok(Self {
            by_operation: Mutex::default(),
            effects: effects.map(open).transpose()?,
            process: format!("{}-{}", process::id(), started.as_nanos()),
            total: AtomicU64::new(0),
        })
    }

    pub(crate) fn count(&self, route: &str, key: &str) -> io::Result<Execution> {
        let mut by_operation = self.by_operation.lock().unwrap_or_else(PoisonError::into_inner);
        let number = by_operation.entry(format!("{route} {key}")).or_default();
        *number += 1;
        let number = *number;
        drop(by_operation);
        self.append(&format!("{route} {key} {}\n", process::id()))?;
        let id = format!("{}-{}", self.process, self.total.fetch_add(1, Ordering::Relaxed));
        Ok(Execution { number, id })
    }

    pub(crate) fn by_operation(&self) -> BTreeMap<String, u64> {
        self.by_operation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// In one call, so that the lines of several processes do not mix; and at once, so that none is lost with a process
    /// that is killed in its handler.
    fn append(&self, line: &str) -> io::Result<()> {
        let Some(mut effects) = self.effects.as_ref() else { return Ok(()) };
        match effects.write(line.as_bytes())? {
            written if written == line.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}
