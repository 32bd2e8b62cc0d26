use std::{fmt, sync::Arc};

use sqlx::{Database, Pool};
use tokio::sync::Notify;

use crate::{
    sql::{
        SqlStore,
        driver::{SqlDatabase, Value},
        error::StatementError,
        table::Table,
    },
    value::{Event, StoreError},
};

use super::statements::OutboxStatements;

use super::Message;

/// Messages that wait in a table until they are sent.
///
/// They are [staged](Self::stage) in the transaction of the change that they report, so that they exist if and only if
/// it is committed, and a [`Relay`](super::Relay) sends them afterwards.
///
/// # The table
///
/// [`migrate`](Self::migrate) creates it; [`schema`](Self::schema) returns its text for applications that manage their
/// own migrations. The table has to be in the database of the business tables, so that it can be written in their
/// transactions. To find messages that are stuck, with plain SQL:
///
/// ```sql
/// SELECT id, topic, message_key, attempts, created_ms FROM idempotency_outbox WHERE sent_ms IS NULL ORDER BY seq;
/// ```
///
/// # Order
///
/// The messages of a key are sent in the order in which they were staged. That is the order of their commits if their
/// transactions ran one after the other, as they do if each of them changes the same row, such as the order's, *before*
/// it stages. Transactions that stage for one key at the same time have no order, and neither have their messages. Each
/// of them is sent all the same: a relay looks for unsent messages, and not for those after the last that it has seen.
pub struct Outbox<D: Database> {
    pub(super) store: SqlStore<D>,
    pub(super) table: Table,
    pub(super) statements: Arc<OutboxStatements>,
    pub(super) woken: Arc<Notify>,
}

impl<D: SqlDatabase> Outbox<D> {
    /// Creates an outbox in the table `idempotency_outbox`, on a pool of the application's. See also
    /// [`SqlStore::outbox`].
    ///
    /// Nothing is sent to the database yet.
    pub fn new(pool: Pool<D>) -> Self {
        SqlStore::builder().without_purge().pool(pool).outbox()
    }

    /// Sets another table: `name` or `schema.name`, of letters, digits and underscores.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is invalid.
    pub fn table(self, name: &str) -> Result<Self, StoreError> {
        Ok(Self::within(self.store, Table::new(name)?))
    }

    fn within(store: SqlStore<D>, table: Table) -> Self {
        let statements = Arc::new(OutboxStatements::new(&D::OUTBOX, &D::DIALECT, &table));
        Self { store, table, statements, woken: Arc::default() }
    }

    /// Returns the statements that create the table and its indexes if they do not exist, for applications that manage
    /// their own migrations.
    pub fn schema(&self) -> String {
        self.statements.schema.clone()
    }

    /// Creates the table and its indexes if they do not exist. Several processes may call it at once.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached, or if it may not create a table.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.store.bring_up(&self.table, &self.statements.schema).await
    }

    /// Returns what [`migrate`](Self::migrate) would change, one sentence for each change: empty if the table is
    /// complete. It changes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the table is another than that of [`schema`](Self::schema), or if the database cannot be
    /// reached.
    pub async fn pending_migrations(&self) -> Result<Vec<String>, StoreError> {
        self.store.pending(&self.table, &self.statements.schema).await
    }

    /// Stages a message in the caller's transaction: the message is sent if and only if the transaction is committed.
    ///
    /// The connection is that of an `sqlx` transaction or of a [`Tx`](crate::sql::Tx): `&mut *tx`. Without a
    /// transaction the message is committed by itself.
    ///
    /// # Errors
    ///
    /// Returns an error if the message's topic, key or id is [invalid](Message), or if the database returns one.
    /// Nothing is tried again, since the transaction may be broken: roll it back.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped, the message may or may not be in the transaction: roll it back.
    pub async fn stage(&self, connection: &mut D::Connection, message: &Message) -> Result<(), StoreError> {
        message.check()?;
        let headers = message.header_lines();
        let texts = [Some(&*message.id), Some(&*message.topic), message.key.as_deref(), headers.as_deref()];
        let [id, topic, key, headers] = texts.map(Value::Text);
        let values = [id, topic, key, headers, Value::Bytes(Some(&message.payload))];
        let staged = D::ask(connection, &self.statements.stage, &values).await;
        staged.map_err(|error| StatementError::Failed(error).into_error::<D>(false))?;
        self.store.shared.observers.report(&Event::OutboxStaged { topic: &message.topic });
        Ok(())
    }

    /// Wakes a relay of this process on a clone of this outbox, so that it does not wait for the end of its pause. Call
    /// it after a commit.
    pub fn wake(&self) {
        self.woken.notify_one();
    }
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Returns an outbox on the pool of this store, in the table `idempotency_outbox`.
    ///
    /// All namespaces share it.
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

pub(super) fn number(number: usize) -> Value<'static> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
