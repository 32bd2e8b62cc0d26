use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// Bounds how long a body may stand still between two of its frames.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    limit: Duration,
    /// Boxed, and not made before the body stands still: most are there at once.
    timer: Option<Pin<Box<Sleep>>>,
    waits: bool,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, timer: None, waits: false }
    }

    /// Looks whether the time is over while no frame is there.
    pub(crate) fn has_elapsed(&mut self, cx: &mut Context<'_>) -> bool {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.waits {
            self.waits = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        timer.as_mut().poll(cx) == Poll::Ready(())
    }

    /// A frame has come: the time starts anew with the next wait.
    pub(crate) fn restart(&mut self) {
        self.waits = false;
    }
}
