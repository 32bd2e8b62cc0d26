use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::Arc,
    thread,
};

use super::{Entry, Line};
use crate::time::{millis, now};

/// The sleep between two looks at the clock, and the gap from which on a process counts as having stood still.
const LOOK: u64 = 50;
const GAP: u64 = 250;

/// Each line is one write at the end of the file, so that lines of several processes do not mix, and a process that is
/// killed leaves none that is half written.
#[derive(Debug)]
pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    pub(crate) fn add(&self, line: Line) {
        self.add_at(now(), line);
    }

    pub(crate) fn add_at(&self, at: u64, line: Line) {
        let text = format!("{}\n", Entry { at, line });
        let written = (&self.0).write(text.as_bytes());
        assert!(matches!(written, Ok(length) if length == text.len()), "the history cannot be written: {written:?}");
    }

    /// Records from now on when this process stands still, for whatever reason.
    pub(crate) fn watch(self: &Arc<Self>, target: &str) {
        let (log, target) = (Arc::clone(self), target.to_owned());
        thread::spawn(move || {
            loop {
                let began = now();
                thread::sleep(millis(LOOK));
                if now() > began + GAP {
                    log.add(Line::Fault { name: "still".into(), target: target.clone(), began });
                }
            }
        });
    }
}
