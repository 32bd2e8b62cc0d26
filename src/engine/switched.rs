//! Whether a layer protects: what its switches say, and who learns of it.

use super::Engine;
use crate::value::{Event, Protection};

impl Engine {
    /// Returns what the switches say. A change is reported.
    #[inline]
    pub(crate) fn protection(&self) -> Protection {
        if self.switches.is_empty() { Protection::On } else { self.switched() }
    }

    fn switched(&self) -> Protection {
        let (protection, before) = self.switches.protection();
        if let Some(before) = before {
            self.report(&Event::Switched { protection, before });
        }
        protection
    }

    /// Names a route that is not protected, once a minute.
    pub(crate) fn name_unprotected(&self, route: &str, protection: Protection) {
        if self.switches.is_to_be_named(route) {
            warn(route, protection);
        }
    }
}

#[cfg(feature = "tracing")]
fn warn(route: &str, protection: Protection) {
    let protection = tracing::field::debug(protection);
    tracing::warn!(
        route,
        protection,
        "a switch is not on, so duplicates of this route run too; set it to `Protection::On` as soon as that is meant to end"
    );
}

#[cfg(not(feature = "tracing"))]
fn warn(_: &str, _: Protection) {}
