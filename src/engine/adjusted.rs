use std::panic::Location;

/// Where a call has changed a part of a policy, so that another one which replaces the whole of it can be warned of.
///
/// A clone is a new base: whoever gives it another policy means to.
#[derive(Debug, Default)]
pub(crate) struct Adjusted(Option<&'static Location<'static>>);

impl Clone for Adjusted {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Adjusted {
    /// The caller changes a part.
    #[track_caller]
    pub(crate) fn note(&mut self) {
        self.0 = Some(Location::caller());
    }

    /// The caller replaces the whole.
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
