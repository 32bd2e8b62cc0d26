//! Reconciliation of operations that began and never ended.
//!
//! A runner that dies leaves its record running until the lease lapses, and abandoned from then on. By default the next
//! try runs. If there is none, or the route runs at most once, somebody has to find out how the operation ended.
//! [`Reconciler`](crate::Reconciler) looks for such records and asks the application, and also about messages that stay
//! in an outbox.

// For maintainers, in reading order:
//
// - `reconciler`: the settings, and the loop. `sweep`: one look at all abandoned records. `worker`: one record, from
//   its claim to the application's answer. `case`: the keys of the claims, and how a record ended.
// - `unsent`, `outbox_source`: the same for messages of an outbox. `abandoned`, `stuck`: what the application sees.
//
// A record is worked at under a claim in the same store, on a key derived from it, so that one process at a time asks
// the application. The answer is written with the claimant that was seen, so that a runner that comes back keeps its
// record.

mod abandoned;
mod case;
#[cfg(feature = "_sql")]
mod outbox_source;
pub(crate) mod reconciler;
#[cfg(feature = "_sql")]
mod stuck;
mod sweep;
#[cfg(feature = "_sql")]
mod unsent;
mod worker;

pub use self::abandoned::{Abandoned, Resolution};
#[cfg(feature = "_sql")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
pub use self::stuck::{Unsent, UnsentResolution};
pub use crate::value::{Payload, SweepReport};
