//! A connection with an open transaction.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Database, Error, SqlSafeStr, pool::PoolConnection};
use sqlx_core::transaction::TransactionManager;
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit};

use crate::sql::{
    driver::SqlDatabase,
    store::{SqlShared, connection_cache::AtHand},
};

use super::running_claim::RunningClaim;

/// A connection with an open transaction. If it is dropped, the connection is closed, which rolls everything back.
pub(super) struct OpenTransaction<D: SqlDatabase> {
    /// `Some` until it is dropped.
    connection: Option<PoolConnection<D>>,
    shared: Arc<SqlShared<D>>,
    /// The runtime of the tasks that close connections and give them back.
    runtime: Handle,
    /// The transaction was committed or rolled back, so the connection may go back.
    ended: bool,
    // Dropped after the connection.
    /// The key's place among the running ones, given up after the connection.
    running: Option<RunningClaim<D>>,
    _permits: Permits,
}

/// The permits for a seat among the transactions, for a writer, and for the pool.
pub(super) type Permits = [Option<OwnedSemaphorePermit>; 3];

type Manager<D> = <D as Database>::TransactionManager;

impl<D: SqlDatabase> OpenTransaction<D> {
    pub(super) fn new(
        connection: PoolConnection<D>,
        shared: Arc<SqlShared<D>>,
        running: RunningClaim<D>,
        permits: Permits,
    ) -> Self {
        let runtime = Handle::current();
        Self { connection: Some(connection), shared, runtime, ended: false, running: Some(running), _permits: permits }
    }

    /// Notes that the claim is written in it.
    pub(super) fn written(&self) {
        if let Some(running) = &self.running {
            running.written();
        }
    }

    /// Returns the connection.
    pub(super) fn connection(&self) -> &D::Connection {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("a connection is there until it is dropped"),
        }
    }

    /// Returns the connection, for a statement.
    pub(super) fn connection_mut(&mut self) -> &mut D::Connection {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("a connection is there until it is dropped"),
        }
    }

    /// Begins the transaction by a text of the database.
    pub(super) async fn begin(&mut self, text: &str) -> Result<(), Error> {
        let text = AssertSqlSafe(text.to_owned()).into_sql_str();
        Manager::<D>::begin(self.connection_mut(), Some(text)).await
    }

    /// Goes on with another connection. The previous one is closed.
    pub(super) fn replace(&mut self, connection: PoolConnection<D>) {
        if let Some(mut former) = self.connection.replace(connection) {
            former.close_on_drop();
        }
    }

    /// Returns whether the transaction is as the layer has opened it, without an open savepoint.
    pub(super) fn has_no_savepoint(&self) -> bool {
        Manager::<D>::get_transaction_depth(self.connection()) == 1
    }

    /// Commits.
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        Manager::<D>::commit(self.connection_mut()).await?;
        self.ended = true;
        Ok(())
    }

    /// Rolls back, unless a savepoint is open: then the connection is closed.
    pub(super) async fn roll_back(&mut self) -> Result<(), Error> {
        if self.has_no_savepoint() {
            Manager::<D>::rollback(self.connection_mut()).await?;
            self.ended = true;
        }
        Ok(())
    }

    /// Rolls the transaction back and keeps the place among the running claims.
    pub(super) async fn abandon(mut self) -> Option<RunningClaim<D>> {
        // If this fails the connection is closed.
        let _ = self.roll_back().await;
        self.running.take()
    }
}

impl<D: SqlDatabase> Drop for OpenTransaction<D> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let _inside = self.runtime.enter();
        let shared = Arc::clone(&self.shared);
        if !self.ended {
            connection.close_on_drop();
            return;
        }
        let reset = if shared.held.is_own() { shared.reset.clone() } else { D::RESET.map(str::to_owned) };
        let Some(reset) = reset else { return give_back(&shared, connection) };
        self.runtime.spawn(async move {
            match D::run(&mut connection, reset).await {
                Ok(()) => give_back(&shared, connection),
                Err(_) => connection.close_on_drop(),
            }
        });
    }
}

/// Gives a connection back. A pool of the application's gets back every connection that a handler has used, and its
/// hooks run.
fn give_back<D: SqlDatabase>(shared: &Arc<SqlShared<D>>, connection: PoolConnection<D>) {
    if shared.held.is_own() {
        shared.held.keep(&shared.pool, AtHand::new(connection));
    }
}
