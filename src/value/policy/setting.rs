use std::fmt;

/// One setting of a policy, if anything was set.
///
/// What a mode (`window`, `one_at_a_time`) sets is kept apart: once another mode takes its place, what was set before
/// holds again.
#[derive(Clone)]
pub(super) struct Setting<T> {
    set: Option<T>,
    by_mode: Option<T>,
}

impl<T> Setting<T> {
    pub(super) fn set(value: T) -> Self {
        Self { set: Some(value), by_mode: None }
    }

    pub(super) fn by_mode(value: T) -> Self {
        Self { set: None, by_mode: Some(value) }
    }

    /// Applies what `later` sets. With `mode`, what an earlier mode set no longer holds.
    pub(super) fn merge(&mut self, later: Self, mode: bool) {
        if mode || later.set.is_some() {
            self.by_mode = None;
        }
        self.set = later.set.or(self.set.take());
        self.by_mode = later.by_mode.or(self.by_mode.take());
    }

    pub(super) fn map<U>(&self, mut change: impl FnMut(&T) -> U) -> Setting<U> {
        Setting { set: self.set.as_ref().map(&mut change), by_mode: self.by_mode.as_ref().map(&mut change) }
    }

    pub(super) fn get(&self) -> Option<&T> {
        self.by_mode.as_ref().or(self.set.as_ref())
    }
}

impl<T: Clone> Setting<T> {
    pub(super) fn or(&self, default: T) -> T {
        self.get().cloned().unwrap_or(default)
    }
}

// Not derived, since `T` need not be `Default`.
impl<T> Default for Setting<T> {
    fn default() -> Self {
        Self { set: None, by_mode: None }
    }
}

impl<T: fmt::Debug> fmt::Debug for Setting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => value.fmt(f),
            None => f.write_str("unset"),
        }
    }
}
