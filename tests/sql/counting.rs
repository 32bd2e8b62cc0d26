//! Counts the statements that this process sends, by what they are about.

use std::{
    fmt::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tracing_subscriber::{Layer, layer::SubscriberExt, registry::Registry};

static COUNT: AtomicU64 = AtomicU64::new(0);
static ABOUT: Mutex<String> = Mutex::new(String::new());

/// How many statements were sent so far that have this text in them.
pub(crate) fn statements_about(text: &str) -> impl Fn() -> u64 {
    ABOUT.lock().unwrap_or_else(PoisonError::into_inner).replace_range(.., text);
    let _ = tracing::subscriber::set_global_default(Registry::default().with(Counting));
    let before = COUNT.load(Relaxed);
    move || COUNT.load(Relaxed) - before
}

struct Counting;

impl<S: tracing::Subscriber> Layer<S> for Counting {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            let mut text = Text::default();
            event.record(&mut text);
            let about = ABOUT.lock().unwrap_or_else(PoisonError::into_inner);
            COUNT.fetch_add(u64::from(text.0.contains(&*about)), Relaxed);
        }
    }
}

/// A statement, and its beginning.
#[derive(Default)]
struct Text(String);

impl tracing::field::Visit for Text {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if matches!(field.name(), "summary" | "db.statement") {
            let _ = write!(self.0, "{value:?} ");
        }
    }
}
