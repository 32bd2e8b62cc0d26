//! The connection with the open transaction, and the claim in it.
//!
//! `Live` is moved between the slot and the handler's `Tx`; wherever it is dropped, the transaction is rolled back by
//! closing the connection, since the pool would hand out a connection whose transaction is still open. Only a commit or
//! a rollback of the layer's own marks it as ended and gives the connection back.

use std::sync::Arc;

use bytes::Bytes;
use sqlx::{AssertSqlSafe, Database, Error, SqlSafeStr, pool::PoolConnection};
use sqlx_core::transaction::TransactionManager;
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit};

use crate::{
    sql::{
        driver::{SqlDatabase, Value},
        error::{CommandError, Refusal},
        store::{
            Shared,
            connection_cache::AtHand,
            retry::fits,
            values::{bytes, time},
        },
    },
    store::{Committed, StoreFuture, Transaction, TransactionSlot},
    value::{Settlement, StoreError, StoreErrorKind},
};

use super::{running, slot::Place};

/// A connection with an open transaction. If it is dropped, the connection is closed, which rolls everything back.
pub(super) struct Live<D: SqlDatabase> {
    /// `Some` until it is dropped.
    connection: Option<PoolConnection<D>>,
    shared: Arc<Shared<D>>,
    /// The runtime of the tasks that close connections and give them back.
    runtime: Handle,
    /// The transaction was committed or rolled back, so the connection may go back.
    ended: bool,
    // Dropped after the connection.
    /// The key's place among the running ones, given up after the connection.
    running: Option<running::Place<D>>,
    _permits: Permits,
}

/// The permits for a seat among the transactions, for a writer, and for the pool.
pub(super) type Permits = [Option<OwnedSemaphorePermit>; 3];

type Manager<D> = <D as Database>::TransactionManager;

impl<D: SqlDatabase> Live<D> {
    pub(super) fn new(
        connection: PoolConnection<D>,
        shared: Arc<Shared<D>>,
        running: running::Place<D>,
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
    fn is_whole(&self) -> bool {
        Manager::<D>::get_transaction_depth(self.connection()) == 1
    }

    /// Commits.
    async fn commit(mut self) -> Result<(), Error> {
        Manager::<D>::commit(self.connection_mut()).await?;
        self.ended = true;
        Ok(())
    }

    /// Rolls back, unless a savepoint is open: then the connection is closed.
    async fn roll_back(&mut self) -> Result<(), Error> {
        if self.is_whole() {
            Manager::<D>::rollback(self.connection_mut()).await?;
            self.ended = true;
        }
        Ok(())
    }

    /// Rolls the transaction back and keeps the place among the running claims.
    pub(super) async fn leave(mut self) -> Option<running::Place<D>> {
        // If this fails the connection is closed.
        let _ = self.roll_back().await;
        self.running.take()
    }
}

impl<D: SqlDatabase> Drop for Live<D> {
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
fn give_back<D: SqlDatabase>(shared: &Arc<Shared<D>>, connection: PoolConnection<D>) {
    if shared.held.is_own() {
        shared.held.keep(&shared.pool, AtHand::new(connection));
    }
}

/// A claim that was granted in a transaction.
pub(super) struct Open<D: SqlDatabase> {
    shared: Arc<Shared<D>>,
    place: Arc<Place<D>>,
    id: Vec<u8>,
}

impl<D: SqlDatabase> Open<D> {
    pub(super) fn new(shared: Arc<Shared<D>>, live: Live<D>, id: Vec<u8>) -> Self {
        Self { shared, place: Arc::new(Place::new(live)), id }
    }

    /// Settles the claim. The record was inserted first and is updated last: if it does not exist any more, neither
    /// does what was done in between.
    async fn settle(&self, mut settlement: Settlement) -> Result<Committed, StoreError> {
        let Some(mut live) = self.place.end() else {
            return Ok(rolled_back::<D>("the handler keeps the transaction beyond its answer"));
        };
        if !live.is_whole() {
            return Ok(rolled_back::<D>("the handler has left a savepoint open"));
        }
        // An answer that the database does not accept leaves a tombstone, as in lease mode.
        let length = settlement.payload.as_ref().map_or(0, Bytes::len) as u64;
        match fits::<D>(live.connection_mut(), length).await {
            Ok(true) => {}
            Ok(false) => settlement.payload = None,
            Err(error) => return failed::<D>(error),
        }
        let claimant = settlement.claimant.to_bytes();
        let payload = Value::Bytes(settlement.payload.as_deref());
        let values = [payload, time(settlement.retention), bytes(&self.id), bytes(&claimant)];
        match D::ask(live.connection_mut(), &self.shared.statements.settle, &values).await {
            Ok(answer) if answer.count == 1 => {}
            Ok(_) => return Ok(rolled_back::<D>("the transaction was ended or undone before the handler answered")),
            Err(error) => return failed::<D>(error),
        }
        match live.commit().await {
            Ok(()) => {
                self.shared.met.add(&self.id);
                Ok(Committed::Done)
            }
            Err(error) => failed::<D>(error),
        }
    }
}

/// Returns the outcome of a transaction that must not be committed.
fn rolled_back<D: SqlDatabase>(why: &str) -> Committed {
    let error = StoreError::new(StoreErrorKind::Other, format!("{}: {why}", D::NAME));
    Committed::RolledBack(error.without_effect())
}

/// Distinguishes a transaction that the handler has broken from a failure of the database.
fn failed<D: SqlDatabase>(error: Error) -> Result<Committed, StoreError> {
    let handlers = matches!(&error, Error::Database(error)
        if matches!(D::refusal(&**error), Refusal::Because(StoreErrorKind::Other, _)));
    let error = CommandError::Failed(error).into_error::<D>(false);
    if handlers { Ok(Committed::RolledBack(error)) } else { Err(error) }
}

impl<D: SqlDatabase> Transaction for Open<D> {
    fn slot(&self) -> TransactionSlot {
        TransactionSlot::new(Arc::clone(&self.place))
    }

    fn commit(self: Box<Self>, settlement: Settlement) -> StoreFuture<'static, Committed> {
        StoreFuture::new(async move { self.settle(settlement).await })
    }

    fn roll_back(self: Box<Self>) -> StoreFuture<'static, ()> {
        StoreFuture::new(async move {
            let Some(mut live) = self.place.end() else { return Ok(()) };
            live.roll_back().await.map_err(|error| CommandError::Failed(error).into_error::<D>(false))
        })
    }
}

impl<D: SqlDatabase> Drop for Open<D> {
    fn drop(&mut self) {
        drop(self.place.end());
    }
}
