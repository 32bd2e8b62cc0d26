//! What the crate says through `tracing`.
#![allow(unreachable_pub)] // each test takes what it needs

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};

/// Warnings and errors, or more, a line an event: its level and its fields.
#[derive(Clone)]
pub struct Heard {
    lines: Arc<Mutex<Vec<String>>>,
    most: Level,
}

impl Heard {
    /// Listens on this thread for as long as the guard lives.
    pub fn listen() -> (Self, DefaultGuard) {
        Self::listen_to(Level::WARN)
    }

    /// The same for events down to `most`.
    pub fn listen_to(most: Level) -> (Self, DefaultGuard) {
        let heard = Self { lines: Arc::default(), most };
        let listening = heard.listen_here();
        (heard, listening)
    }

    /// Listens on this thread too.
    pub fn listen_here(&self) -> DefaultGuard {
        tracing::subscriber::set_default(self.clone())
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_idempotency") && *metadata.level() <= self.most
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
