//! Messages that are staged with a transaction, and sent after it.

mod looking;
mod message;
mod relaying;
mod statements;

use std::{fmt, sync::Arc};

use sqlx::{Database, Pool};
use tokio::sync::Notify;

use crate::value::StoreError;

use super::{
    SqlStore,
    driver::{Driver, Value},
    error::CommandError,
    table::Table,
};

use self::statements::Statements;

pub(super) use self::statements::{Texts, outbox_texts};
pub use self::{
    looking::OutboxStats,
    message::{Message, StagedMessage},
};

/// Messages that wait in a table until they are sent.
///
/// They are [staged](Self::stage) in the transaction of what they tell of, so that they are there if and only if it is
/// committed, and a [`Relay`](crate::outbox::Relay) sends them afterwards.
///
/// # The table
///
/// [`migrate`](Self::migrate) creates it; [`schema`](Self::schema) is the text for those who own their migrations. It
/// is in the database of the business's tables, or it could not be written in their transactions. What is stuck, with
/// plain SQL:
///
/// ```sql
/// SELECT id, topic, message_key, attempts, created_ms FROM idempotency_outbox WHERE sent_ms IS NULL ORDER BY seq;
/// ```
///
/// # Order
///
/// The messages of a key are sent in the order in which they were staged. That is the order in which their transactions
/// were committed wherever those were one after the other, as they are when each of them changes the same row, such as
/// the order's, *before* it stages. Transactions that stage for one key at the same time have no order, and so their
/// messages have none; each of them is sent all the same: a relay looks for what is unsent, and not for what comes
/// after the last it has seen.
pub struct Outbox<D: Database> {
    store: SqlStore<D>,
    table: Table,
    statements: Arc<Statements>,
    woken: Arc<Notify>,
}

impl<D: Driver> Outbox<D> {
    /// An outbox in the table `idempotency_outbox`, on a pool of the application's. See also [`SqlStore::outbox`].
    ///
    /// Nothing is asked of the database yet.
    pub fn new(pool: Pool<D>) -> Self {
        SqlStore::builder().without_purge().pool(pool).outbox()
    }

    /// One in another table: `name` or `schema.name`, of letters, digits and underscores.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is none.
    pub fn table(self, name: &str) -> Result<Self, StoreError> {
        Ok(Self::within(self.store, Table::new(name)?))
    }

    fn within(store: SqlStore<D>, table: Table) -> Self {
        let statements = Arc::new(Statements::new(&D::OUTBOX, &D::DIALECT, &table));
        Self { store, table, statements, woken: Arc::default() }
    }

    /// The statements that create the table and its indexes, if they are not there: for those who own their
    /// migrations.
    pub fn schema(&self) -> String {
        self.statements.schema.clone()
    }

    /// Creates the table and its indexes, if they are not there. It may be called by several processes at once.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.store.bring_up(&self.table, &self.statements.schema).await
    }

    /// Stages a message in the caller's transaction: it is sent if and only if that is committed.
    ///
    /// The connection is that of an `sqlx` transaction or of a [`Tx`](crate::store::Tx), by `&mut *tx`. Without a
    /// transaction the message is committed by itself.
    ///
    /// # Errors
    ///
    /// Returns an error if the message's topic, key or id is [none](Message), and those of the database. Nothing is tried again,
    /// since the transaction may be broken; roll it back.
    ///
    /// # Cancellation
    ///
    /// Dropped half-way, the message may or may not be in the transaction; roll it back.
    pub async fn stage(&self, connection: &mut D::Connection, message: &Message) -> Result<(), StoreError> {
        message.check()?;
        let headers = message.header_lines();
        let texts = [Some(&*message.id), Some(&*message.topic), message.key.as_deref(), headers.as_deref()];
        let [id, topic, key, headers] = texts.map(Value::Text);
        let values = [id, topic, key, headers, Value::Bytes(Some(&message.payload))];
        let staged = D::ask(connection, &self.statements.stage, &values).await;
        staged.map(drop).map_err(|error| CommandError::Failed(error).into_error::<D>(false))
    }

    /// Has a relay of this process, on a clone of this outbox, look now and not at the end of its pause: for after a
    /// commit.
    pub fn wake(&self) {
        self.woken.notify_one();
    }
}

impl<D: Driver> SqlStore<D> {
    /// An outbox on the pool of this store, in the table `idempotency_outbox`.
    ///
    /// It is one for all namespaces.
    pub fn outbox(&self) -> Outbox<D> {
        Outbox::within(self.clone(), Table::named("idempotency_outbox"))
    }
}

impl<D: Database> Clone for Outbox<D> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            table: self.table.clone(),
            statements: Arc::clone(&self.statements),
            woken: Arc::clone(&self.woken),
        }
    }
}

impl<D: Database> fmt::Debug for Outbox<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("database", &D::NAME)
            .field("table", &format_args!("{}", self.table))
            .finish_non_exhaustive()
    }
}

fn number(number: usize) -> Value<'static> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
