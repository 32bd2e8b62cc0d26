//! Asking the sentinels before a command, if the server has been silent for a second.
//!
//! A master that stood still may have been replaced without knowing it, and would accept claims that are lost later. A
//! process that was busy notices by its broken or silent connection; one that was idle would not, so it asks first.

use std::sync::Arc;

use tokio::time::timeout;

use super::{ManagedConnection, OpenConnection};
use crate::store::redis::error::CommandError;

impl ManagedConnection {
    /// Returns the connection. If nothing was answered on it for a second, the sentinels are queried first.
    pub(in crate::store::redis) async fn confirmed(self: &Arc<Self>) -> Result<OpenConnection, CommandError> {
        if self.target.has_sentinels() && self.confirmed_at.is_long_ago() {
            Box::pin(self.confirm()).await;
        }
        self.connected().await
    }

    /// Queries the sentinels, once for all callers. If they do not answer, nothing changes: the master may be reachable
    /// although they are not.
    async fn confirm(self: &Arc<Self>) {
        let _confirming = self.confirmed_at.turn().await;
        let Some(current) = self.current().filter(|_| self.confirmed_at.is_long_ago()) else { return };
        let named = timeout(self.limits.connect, self.target.address()).await;
        if let Ok(Ok(Some(address))) = named
            && address != current.address
        {
            self.give_up(current.number);
        }
        self.confirmed_at.now();
    }
}
