//! A warning for builder calls whose order loses a setting.

use std::panic::Location;

/// The place in the source that last changed a part of a policy, for a warning if a later call replaces the whole
/// policy.
///
/// A clone is a new base without such a place: a call that gives it another policy is deliberate.
#[derive(Debug, Default)]
pub(crate) struct Adjusted(Option<&'static Location<'static>>);

impl Clone for Adjusted {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Adjusted {
    /// Records the place of a call that changes a part.
    #[track_caller]
    pub(crate) fn note(&mut self) {
        self.0 = Some(Location::caller());
    }

    /// Warns if the call replaces a policy of which a part was changed before.
    #[track_caller]
    pub(crate) fn replace(&mut self) {
        if let Some(adjusted) = self.0.take() {
            warn_of_replaced(adjusted, Location::caller());
        }
    }
}

#[cfg(feature = "tracing")]
fn warn_of_replaced(adjusted: &Location<'_>, replaced: &Location<'_>) {
    tracing::warn!(
        %adjusted,
        %replaced,
        "`policy(..)` has replaced what a call before it set, such as a lease or a retention: call `policy(..)` first, and adjust \
         it afterwards"
    );
}

#[cfg(not(feature = "tracing"))]
fn warn_of_replaced(_: &Location<'_>, _: &Location<'_>) {}
