use std::{fmt, ops::Deref};

/// A policy whose settings can be applied one after the other, and come to plain values.
pub(crate) trait Resolve {
    type Values;

    /// Applies what `later` sets, and leaves everything else as it is.
    fn merge(&mut self, later: Self);

    /// Returns the plain values: what was set, and the defaults for the rest.
    fn resolve(&self) -> Self::Values;
}

/// The policy of a layer: all that was set, and the plain values, which are what a request reads.
#[derive(Clone)]
pub(crate) struct Resolved<P: Resolve> {
    set: P,
    values: P::Values,
}

impl<P: Resolve> Resolved<P> {
    pub(crate) fn apply(&mut self, policy: P) {
        self.set.merge(policy);
        self.values = self.set.resolve();
    }
}

impl<P: Resolve> From<P> for Resolved<P> {
    fn from(set: P) -> Self {
        let values = set.resolve();
        Self { set, values }
    }
}

impl<P: Resolve> Deref for Resolved<P> {
    type Target = P::Values;

    fn deref(&self) -> &P::Values {
        &self.values
    }
}

impl<P: Resolve<Values: fmt::Debug>> fmt::Debug for Resolved<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}
