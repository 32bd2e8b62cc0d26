//! Reconciliation of operations that began and never ended.
//!
//! A runner that dies leaves its record running until the lease lapses, and abandoned from then on. By default the next
//! try runs. If there is none, or the route runs at most once, somebody has to find out how the operation ended.
//! [`Reconciler`] looks for such records and asks the application, and also about messages that stay in an outbox.

mod abandoned;
mod case;
mod reconciler;
#[cfg(feature = "_sql")]
mod stuck;
mod sweep;
#[cfg(feature = "_sql")]
mod unsent;

#[cfg(feature = "_sql")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
pub use self::stuck::{Unsent, UnsentResolution};
pub use self::{
    abandoned::{Abandoned, Resolution},
    reconciler::Reconciler,
    sweep::SweepReport,
};
