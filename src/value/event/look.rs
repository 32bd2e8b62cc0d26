//! What most events have in common.

use super::Event;
use crate::value::RecordKey;

impl<'a> Event<'a> {
    /// Returns the name of the event, for labels and logs: the variant's in lower case with hyphens, such as
    /// `claim-lost`. It is stable.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "refused",
            Self::Replayed { .. } => "replayed",
            Self::Responded { .. } => "responded",
            Self::ReplayRefused { .. } => "replay-refused",
            Self::Unverified { .. } => "unverified",
            Self::Switched { .. } => "switched",
            Self::WouldRefuse { .. } => "would-refuse",
            Self::WouldReplay { .. } => "would-replay",
            Self::Claimed { .. } => "claimed",
            Self::Settled { .. } => "settled",
            Self::Released { .. } => "released",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Waiting { .. } => "waiting",
            Self::Waited { .. } => "waited",
            Self::Keyless { .. } => "keyless",
            Self::ClaimLost { .. } => "claim-lost",
            Self::Stalled { .. } => "stalled",
            Self::StoreFailed { .. } => "store-failed",
            Self::NotRecorded { .. } => "not-recorded",
            Self::FailedOpen { .. } => "failed-open",
            Self::Detached { .. } => "detached",
            Self::BackgroundEnded { .. } => "background-ended",
            Self::Dropped { .. } => "dropped",
            Self::TokenIssued { .. } => "token-issued",
            Self::TokenNotIssued { .. } => "token-not-issued",
            Self::DeadLettered { .. } => "dead-lettered",
            Self::OutboxStaged { .. } => "outbox-staged",
            Self::OutboxSent { .. } => "outbox-sent",
            Self::OutboxRetried { .. } => "outbox-retried",
            Self::OutboxStuck { .. } => "outbox-stuck",
            Self::OutboxBacklog { .. } => "outbox-backlog",
            Self::Reconciled { .. } => "reconciled",
            Self::ReconcileFailed { .. } => "reconcile-failed",
            Self::Purged { .. } => "purged",
            Self::PurgeFailed { .. } => "purge-failed",
        }
    }

    /// Returns the operation, if the event is about one that has a valid key.
    #[must_use]
    pub const fn key(&self) -> Option<&'a RecordKey> {
        match *self {
            Self::Refused { key, .. } | Self::WouldRefuse { key, .. } | Self::DeadLettered { key, .. } => key,
            Self::Replayed { key, .. }
            | Self::Responded { key }
            | Self::ReplayRefused { key, .. }
            | Self::WouldReplay { key }
            | Self::Claimed { key, .. }
            | Self::Settled { key, .. }
            | Self::Released { key, .. }
            | Self::Withdrawn { key }
            | Self::Waiting { key }
            | Self::Waited { key, .. }
            | Self::ClaimLost { key, .. }
            | Self::Stalled { key, .. }
            | Self::StoreFailed { key, .. }
            | Self::NotRecorded { key, .. }
            | Self::FailedOpen { key, .. }
            | Self::Detached { key }
            | Self::BackgroundEnded { key, .. }
            | Self::Dropped { key, .. } => Some(key),
            Self::Unverified { .. }
            | Self::Switched { .. }
            | Self::Keyless { .. }
            | Self::TokenIssued { .. }
            | Self::TokenNotIssued { .. }
            | Self::OutboxStaged { .. }
            | Self::OutboxSent { .. }
            | Self::OutboxRetried { .. }
            | Self::OutboxStuck { .. }
            | Self::OutboxBacklog { .. }
            | Self::Reconciled { .. }
            | Self::ReconcileFailed { .. }
            | Self::Purged { .. }
            | Self::PurgeFailed { .. } => None,
        }
    }

    /// Returns the route of the operation: a route's template or name, the name of a consumer or a function, the purpose
    /// of a token. `None` if the event is not about one operation.
    ///
    /// A layer with [`route_by_path`](crate::IdempotencyLayer::route_by_path) has as many routes as paths are requested.
    #[must_use]
    pub fn route(&self) -> Option<&'a str> {
        match *self {
            Self::Refused { route, .. }
            | Self::WouldRefuse { route, .. }
            | Self::Unverified { route, .. }
            | Self::Keyless { route }
            | Self::DeadLettered { route, .. } => Some(route),
            Self::TokenIssued { purpose, .. } | Self::TokenNotIssued { purpose, .. } => Some(purpose),
            _ => self.key().map(RecordKey::route),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_by_name_route_and_key() {
        let key = RecordKey::new("/orders", None, "k-1").unwrap();
        let events = [
            (Event::Waiting { key: &key }, ("waiting", Some("/orders"), Some(&key))),
            (Event::Keyless { route: "/orders" }, ("keyless", Some("/orders"), None)),
            (Event::OutboxStaged { topic: "mail" }, ("outbox-staged", None, None)),
        ];
        for (event, found) in events {
            assert_eq!((event.name(), event.route(), event.key()), found);
            assert_eq!(event.to_string(), found.0);
        }
    }
}
