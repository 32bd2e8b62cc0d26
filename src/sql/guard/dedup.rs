use std::fmt;

use super::{
    Inserted,
    connection::{Bind, Connection},
    name::{Column, TableName},
    text::{Form, Text, Values},
};

/// A table of the business numbers that were seen. Its unique key recognises a number that comes again.
///
/// The scheme is also known as a flow table (流水表).
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use sqlx::{Connection, SqliteConnection};
/// use tower_idempotency::sql::guard::{Column, Inserted, DedupTable};
///
/// const PAYMENTS: DedupTable = DedupTable::new("payments", "serial");
/// const CENTS: Column = Column::new("cents");
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> sqlx::Result<()> {
/// # let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
/// # let schema = "CREATE TABLE payments (serial TEXT PRIMARY KEY, cents INTEGER NOT NULL)";
/// # sqlx::raw_sql(schema).execute(&mut connection).await?;
/// let mut tx = connection.begin().await?;
/// assert_eq!(PAYMENTS.on(&mut *tx).set(CENTS, 1_999_i64).insert("P-1").await?, Inserted::New);
/// // Here goes what happens once for each number, in the same transaction.
/// tx.commit().await?;
///
/// assert_eq!(PAYMENTS.on(&mut connection).set(CENTS, 1_999_i64).insert("P-1").await?, Inserted::AlreadyThere);
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct DedupTable {
    table: TableName,
    number: Column,
}

impl DedupTable {
    /// Creates the guard from the table and the column of numbers, which must have a primary or unique key of its own.
    ///
    /// # Panics
    ///
    /// Panics if one of them is not a valid name; see [`StateMachine::new`](super::StateMachine::new).
    #[track_caller]
    pub const fn new(table: &'static str, number: &'static str) -> Self {
        Self { table: TableName::new(table), number: Column::new(number) }
    }

    /// Begins an insert on this connection, which has to be in the transaction of the work that the number stands for.
    pub fn on<'v, C: Connection>(&self, connection: &'v mut C) -> Insert<'v, C> {
        Insert { table: *self, connection, values: Values::new() }
    }
}

/// An insert into a [`DedupTable`].
#[must_use = "nothing is written before `insert`"]
pub struct Insert<'v, C: Connection> {
    table: DedupTable,
    connection: &'v mut C,
    values: Values<'v, C>,
}

impl<'v, C: Connection> Insert<'v, C> {
    /// Sets another column of the row, if the number is new. The row of a number that is there already stays as it is.
    pub fn set<V: Bind<C> + 'v>(mut self, column: Column, value: V) -> Self {
        self.values.push(Form::Alone, column, value);
        self
    }

    /// Inserts the number, or recognises it. The transaction can go on in either case.
    ///
    /// If another transaction has inserted the number and has not ended, this one waits for it. The caller has to
    /// compare whether the content is the same as the first time.
    ///
    /// # Errors
    ///
    /// Returns an error if the database does, such as for a deadlock or a serialization failure: roll back, and begin
    /// anew. It is also an error if the row breaks another unique key or a foreign key. A future that is dropped may
    /// have inserted.
    pub async fn insert<N: Bind<C>>(self, number: N) -> sqlx::Result<Inserted> {
        let text = self.row(number.clone())?;
        match text.change(self.connection).await {
            Ok(0) => Ok(Inserted::AlreadyThere),
            Ok(_) => Ok(Inserted::New),
            Err(sqlx::Error::Database(error)) if !C::LEAVES_OUT && error.is_unique_violation() => {
                // The row may have broken another key of the table.
                let text = self.look(number)?;
                let there = text.fetch(self.connection).await?.is_some();
                if there { Ok(Inserted::AlreadyThere) } else { Err(sqlx::Error::Database(error)) }
            }
            Err(error) => Err(error),
        }
    }

    fn row<N: Bind<C>>(&self, number: N) -> sqlx::Result<Text<C>> {
        let DedupTable { table, number: column } = self.table;
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
        let DedupTable { table, number: column } = self.table;
        let mut text = Text::new("SELECT 1 FROM ");
        text.table(table).sql(" WHERE ").column(column).sql(" = ").value(number)?;
        // The failed insert holds this lock already.
        text.sql(C::SHARING);
        Ok(text)
    }
}

impl fmt::Debug for DedupTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DedupTable").field("table", &self.table.name()).field("number", &self.number.name()).finish()
    }
}

impl<C: Connection> fmt::Debug for Insert<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Insert").field("of", &self.table).finish_non_exhaustive()
    }
}
