use std::fmt;

use super::{
    Flow,
    connection::{Bind, Connection},
    name::{Column, Table},
    text::{Form, Text, Values},
};

/// Business numbers that were seen, in a table that says so by its unique key.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use sqlx::{Connection, SqliteConnection};
/// use tower_idempotency::guard::{Column, Flow, FlowTable};
///
/// const PAYMENTS: FlowTable = FlowTable::new("payments", "serial");
/// const CENTS: Column = Column::new("cents");
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> sqlx::Result<()> {
/// # let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
/// # let schema = "CREATE TABLE payments (serial TEXT PRIMARY KEY, cents INTEGER NOT NULL)";
/// # sqlx::raw_sql(schema).execute(&mut connection).await?;
/// let mut tx = connection.begin().await?;
/// assert_eq!(PAYMENTS.on(&mut *tx).set(CENTS, 1_999_i64).insert("P-1").await?, Flow::New);
/// // Here goes what happens once for each number, in the same transaction.
/// tx.commit().await?;
///
/// assert_eq!(PAYMENTS.on(&mut connection).set(CENTS, 1_999_i64).insert("P-1").await?, Flow::Known);
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct FlowTable {
    table: Table,
    number: Column,
}

impl FlowTable {
    /// The table, and the column of numbers, which must have a primary or unique key of its own.
    ///
    /// # Panics
    ///
    /// Panics as [`StateMachine::new`](super::StateMachine::new) does, if one of them is no name.
    #[track_caller]
    pub const fn new(table: &'static str, number: &'static str) -> Self {
        Self { table: Table::new(table), number: Column::new(number) }
    }

    /// An entry on this connection, which belongs into the transaction of what the number stands for.
    pub fn on<'v, C: Connection>(&self, connection: &'v mut C) -> Entry<'v, C> {
        Entry { flow: *self, connection, values: Values::new() }
    }
}

/// An entry of a [`FlowTable`].
#[must_use = "nothing is written before `insert`"]
pub struct Entry<'v, C: Connection> {
    flow: FlowTable,
    connection: &'v mut C,
    values: Values<'v, C>,
}

impl<'v, C: Connection> Entry<'v, C> {
    /// Another column of the row, if the number is new. The row of a known number stays as it is.
    pub fn set<V: Bind<C> + 'v>(mut self, column: Column, value: V) -> Self {
        self.values.push(Form::Alone, column, value);
        self
    }

    /// Inserts the number, or recognises it. The transaction goes on either way.
    ///
    /// While another transaction has inserted the number and not ended, this one waits for it. Whether the content is the
    /// same as the first time is for the caller to compare.
    ///
    /// # Errors
    ///
    /// Those of the database, among them a lost deadlock or serialization: roll back, and begin anew. Other unique keys
    /// and foreign keys that the row breaks are errors. A future that is dropped may have inserted.
    pub async fn insert<N: Bind<C>>(self, number: N) -> sqlx::Result<Flow> {
        let text = self.row(number.clone())?;
        match self.connection.change(text).await {
            Ok(0) => Ok(Flow::Known),
            Ok(_) => Ok(Flow::New),
            Err(sqlx::Error::Database(error)) if !C::LEAVES_OUT && error.is_unique_violation() => {
                // It may be another key of the table that the row breaks.
                let text = self.look(number)?;
                let there = self.connection.look(text).await?.is_some();
                if there { Ok(Flow::Known) } else { Err(sqlx::Error::Database(error)) }
            }
            Err(error) => Err(error),
        }
    }

    fn row<N: Bind<C>>(&self, number: N) -> sqlx::Result<Text<C>> {
        let FlowTable { table, number: column } = self.flow;
        let mut text = Text::new("INSERT INTO ");
        text.table(table).sql(" (").column(column);
        for column in self.values.columns() {
            text.sql(", ").column(column);
        }
        text.sql(") VALUES (").value(number)?;
        self.values.write(&mut text, ", ")?;
        text.sql(")");
        if C::LEAVES_OUT {
            text.sql(" ON CONFLICT (").column(column).sql(") DO NOTHING");
        }
        Ok(text)
    }

    fn look<N: Bind<C>>(&self, number: N) -> sqlx::Result<Text<C>> {
        let FlowTable { table, number: column } = self.flow;
        let mut text = Text::new("SELECT 1 FROM ");
        text.table(table).sql(" WHERE ").column(column).sql(" = ").value(number)?;
        // The insert that failed has this lock already.
        text.sql(C::SHARING);
        Ok(text)
    }
}

impl fmt::Debug for FlowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowTable").field("table", &self.table.name()).field("number", &self.number.name()).finish()
    }
}

impl<C: Connection> fmt::Debug for Entry<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("of", &self.flow).finish_non_exhaustive()
    }
}
