//! The details of events, each with a name that is stable enough for a label.

use std::fmt;

use http::StatusCode;

/// Writes the name of a value.
macro_rules! named {
    ($type:ident { $($variant:pat => $name:literal),* $(,)? }) => {
        impl $type {
            /// Returns the name, for labels and logs. It is stable.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $($variant => $name,)*
                }
            }
        }

        impl fmt::Display for $type {
            /// Writes the name.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// A verb of the [`Store`](crate::store::Store) trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreVerb {
    /// `issue`
    Issue,
    /// `claim`
    Claim,
    /// `renew`
    Renew,
    /// `settle`
    Settle,
    /// `release`
    Release,
    /// `changed`
    Changed,
}

named! { StoreVerb {
    Self::Issue => "issue",
    Self::Claim => "claim",
    Self::Renew => "renew",
    Self::Settle => "settle",
    Self::Release => "release",
    Self::Changed => "changed",
} }

/// Why an answer was not kept, although its operation is settled: the record is a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotKept {
    /// It is a stream: an event stream, or the handler has said so
    /// ([`Operation::stream`](crate::Operation::stream)).
    Stream,
    /// It is a partial answer (206), or the upgrade of a connection (101).
    Partial,
    /// It is longer than the [limit](crate::Policy::response_limit).
    TooLarge,
    /// Its end took longer than [`stream_after`](crate::Policy::stream_after).
    TooSlow,
    /// Its body broke off.
    Broken,
    /// The store does not take an answer of this size.
    RefusedByStore,
    /// [`on_keep`](crate::IdempotencyLayer::on_keep) has failed.
    HookFailed,
    /// The value of a function could not be written as JSON, or is longer than its limit.
    NotSerializable,
}

named! { NotKept {
    Self::Stream => "stream",
    Self::Partial => "partial",
    Self::TooLarge => "too-large",
    Self::TooSlow => "too-slow",
    Self::Broken => "broken",
    Self::RefusedByStore => "refused-by-store",
    Self::HookFailed => "hook-failed",
    Self::NotSerializable => "not-serializable",
} }

/// How the wait of a duplicate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitEnd {
    /// The first one has ended, or its lease has lapsed.
    Ended,
    /// The first one was still running when the time was over. The duplicate is refused.
    TimedOut,
    /// The store failed.
    StoreFailed,
    /// The client of the duplicate left.
    Cancelled,
}

named! { WaitEnd {
    Self::Ended => "ended",
    Self::TimedOut => "timed-out",
    Self::StoreFailed => "store-failed",
    Self::Cancelled => "cancelled",
} }

/// Why the work of a client that left was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The layer [cancels on disconnect](crate::IdempotencyLayer::cancel_on_disconnect).
    CancelOnDisconnect,
    /// The work was never polled in a Tokio runtime that could go on with it.
    NoRuntime,
    /// It took longer than [`BackgroundTasks::max_duration`](crate::BackgroundTasks::max_duration).
    TimedOut,
    /// The runtime has shut down.
    Shutdown,
}

named! { DropReason {
    Self::CancelOnDisconnect => "cancel-on-disconnect",
    Self::NoRuntime => "no-runtime",
    Self::TimedOut => "timed-out",
    Self::Shutdown => "shutdown",
} }

/// Why a message is to be put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// No other try can change that it failed.
    FailedPermanently,
    /// It was tried as often as [`attempts`](crate::ConsumerLayer::attempts) allows.
    #[non_exhaustive]
    Exhausted {
        /// The number of tries.
        attempts: u32,
    },
    /// It has no key, no valid key or no scope.
    Rejected,
    /// Its key belongs to another message.
    Mismatch,
    /// It is not known how its only run ended.
    OutcomeUnknown,
}

named! { DeadLetterReason {
    Self::FailedPermanently => "failed-permanently",
    Self::Exhausted { .. } => "exhausted",
    Self::Rejected => "rejected",
    Self::Mismatch => "mismatch",
    Self::OutcomeUnknown => "outcome-unknown",
} }

/// Returns the status with this number; `None` if there is none, as for 0.
pub(crate) fn status_of(number: u16) -> Option<StatusCode> {
    StatusCode::from_u16(number).ok()
}
