//! What is shown while something takes long: on standard error, for people only.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that counts. It is gone when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Begins a line such as `looked at 1,200 records`.
    pub(crate) fn new(before: &str, behind: &str, json: bool) -> Self {
        let seen = io::stderr().is_terminal() && !json;
        let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) =
            ProgressStyle::with_template(&format!("{{spinner}} {before} {{human_pos}} {behind} ({{elapsed}})"))
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(150));
        Self(bar)
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
