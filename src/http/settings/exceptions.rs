//! Routes and requests that a layer leaves out. They are looked up before the key, so that a route with settings of its
//! own can be excluded from the layer around the router.
//!
//! A request that is left out is not verified either, and reaches the handler unprotected. The documentation of
//! `IdempotencyLayer::verify` says so.

use std::{fmt, sync::Arc};

use http::request::Parts;

use crate::extract::route;

/// Which requests a layer leaves alone, though their method is protected.
#[derive(Clone, Default)]
pub(crate) struct Exceptions {
    /// The names of the routes that are left out.
    routes: Vec<Arc<str>>,
    /// Conditions on the head of a request; one that holds is enough.
    conditions: Vec<Arc<Condition>>,
}

type Condition = dyn Fn(&Parts) -> bool + Send + Sync;

impl Exceptions {
    /// Leaves a route out, by its name.
    pub(crate) fn add_route(&mut self, name: String) {
        self.routes.push(name.into());
    }

    /// Leaves out requests for which the condition holds.
    pub(crate) fn add_condition(&mut self, condition: impl Fn(&Parts) -> bool + Send + Sync + 'static) {
        self.conditions.push(Arc::new(condition));
    }

    /// Returns whether a request is left out.
    pub(crate) fn cover(&self, parts: &Parts) -> bool {
        let by_name = || {
            let route = route(parts);
            self.routes.iter().any(|name| **name == *route)
        };
        (!self.routes.is_empty() && by_name()) || self.conditions.iter().any(|holds| holds(parts))
    }
}

impl fmt::Debug for Exceptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exceptions").field("routes", &self.routes).finish_non_exhaustive()
    }
}
