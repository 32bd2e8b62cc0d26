//! Errors that no other try can change, as the application defines them.

use std::{any::Any, fmt, sync::Arc};

/// Which errors of a message's service, or of a function, no other try can change.
#[derive(Clone, Default)]
pub(crate) struct Permanent(Option<Arc<IsPermanent>>);

type IsPermanent = dyn Fn(&dyn Any) -> bool + Send + Sync;

impl Permanent {
    /// Those of type `E` for which `is_permanent` says so.
    pub(crate) fn when<E: 'static>(is_permanent: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(move |error| error.downcast_ref().is_some_and(&is_permanent))))
    }

    pub(crate) fn is(&self, error: &dyn Any) -> bool {
        self.0.as_ref().is_some_and(|is_permanent| is_permanent(error))
    }
}

impl fmt::Debug for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Permanent(..)" } else { "Permanent(none)" })
    }
}
