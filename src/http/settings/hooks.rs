//! The application's own steps at a replay and at keeping an answer.
//!
//! Both are bounded in time, and their panics are values. Neither fails open: a replay that nobody has decided about is
//! refused, and an answer that could not be changed is not kept.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Response, request::Parts};
use tokio::time::timeout;

use crate::{
    engine::CatchUnwind,
    value::{KeptAnswer, RecordKey},
};

/// Decides about a replay. `Err` is the response in place of it.
pub(crate) type OnReplay = dyn Fn(Parts, KeptAnswer) -> Hooked<Result<KeptAnswer, Response<Bytes>>> + Send + Sync;

/// Changes what is kept of an answer.
pub(crate) type OnKeep = dyn Fn(RecordKey, KeptAnswer) -> Hooked<KeptAnswer> + Send + Sync;

/// The future of a hook.
pub(crate) type Hooked<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The hooks of a layer.
#[derive(Clone)]
pub(crate) struct Hooks {
    pub(crate) on_replay: Option<Arc<OnReplay>>,
    pub(crate) on_keep: Option<Arc<OnKeep>>,
    /// How long each may take.
    pub(crate) timeout: Duration,
}

/// Why a hook has not come to an end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HookFailure {
    Panicked,
    TimedOut,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { on_replay: None, on_keep: None, timeout: Duration::from_secs(5) }
    }
}

impl Hooks {
    /// Asks a hook, within the time that it has.
    pub(crate) async fn ask<T>(&self, hook: impl FnOnce() -> Hooked<T>) -> Result<T, HookFailure> {
        // The hook may panic before it has a future.
        let Ok(future) = catch_unwind(AssertUnwindSafe(hook)) else { return Err(HookFailure::Panicked) };
        match timeout(self.timeout, CatchUnwind::new(future)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) => Err(HookFailure::Panicked),
            Err(_) => Err(HookFailure::TimedOut),
        }
    }
}

/// Reports a hook that has failed. The panic hook has reported a panic itself.
#[cfg(feature = "tracing")]
pub(crate) fn report(hook: &'static str, key: &RecordKey, failure: HookFailure) {
    tracing::error!(
        hook,
        route = key.route(),
        ?failure,
        "a hook has failed: its replay is refused, and what it was to change is not kept"
    );
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn report(_: &'static str, _: &RecordKey, _: HookFailure) {}
