//! What was begun and never ended, found and brought to an end.
//!
//! A runner that dies leaves its record running until the lease lapses, and abandoned from then on. By default the next
//! try runs; if there is none, and at most once, somebody has to find out how it ended. [`Reconciler`] looks for such
//! records and asks the application, and for messages that stay in an outbox.

mod abandoned;
mod case;
mod reconciler;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod stuck;
mod sweep;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod unsent;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
pub use self::stuck::{Unsent, UnsentResolution};
pub use self::{
    abandoned::{Abandoned, Resolution},
    reconciler::Reconciler,
    sweep::SweepReport,
};
