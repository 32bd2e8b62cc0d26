use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// A limit for the time between two frames of a body.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    limit: Duration,
    /// Boxed, and created only when the body pauses: most bodies arrive at once.
    timer: Option<Pin<Box<Sleep>>>,
    waits: bool,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, timer: None, waits: false }
    }

    /// Returns whether the time is over while no frame is available.
    pub(crate) fn has_elapsed(&mut self, cx: &mut Context<'_>) -> bool {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.waits {
            self.waits = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        timer.as_mut().poll(cx) == Poll::Ready(())
    }

    /// Notes that a frame has arrived: the time starts again with the next wait.
    pub(crate) fn restart(&mut self) {
        self.waits = false;
    }
}
