use std::fmt;

use sqlx::Decode;

use super::{
    Written,
    connection::{Bind, Connection},
    name::{Column, TableName},
    text::{Form, Text, Values, several},
};

/// The default of `tries`: how often a row is read and written if others write it too.
const TRIES: usize = 5;

/// Rows with a version, which are written only if they are as they were read.
///
/// The column of versions is an integer and not null. Each write of a guard increases it by one, and every other write
/// has to do the same.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use sqlx::{Connection, SqliteConnection};
/// use tower_idempotency::sql::guard::{Column, Versioned, Written};
///
/// const ACCOUNTS: Versioned = Versioned::new("accounts", "name", "version");
/// const CENTS: Column = Column::new("cents");
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> sqlx::Result<()> {
/// # let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
/// # let schema = "CREATE TABLE accounts (name TEXT PRIMARY KEY, cents INTEGER, version INTEGER NOT NULL); \
/// #               INSERT INTO accounts VALUES ('ann', 500, 7)";
/// # sqlx::raw_sql(schema).execute(&mut connection).await?;
/// // Version 7 was read, with what was to be decided by.
/// let written = ACCOUNTS.on(&mut connection).take(CENTS, 200_i64).write("ann", 7).await?;
/// assert_eq!(written, Written::Done);
/// // Somebody else has read it too.
/// let written = ACCOUNTS.on(&mut connection).take(CENTS, 200_i64).write("ann", 7).await?;
/// assert_eq!(written, Written::Stale);
/// // 300 are left: this is not a matter of trying again.
/// let written = ACCOUNTS.on(&mut connection).take(CENTS, 301_i64).write("ann", 8).await?;
/// assert_eq!(written, Written::Refused);
///
/// // Reads, computes and writes, and does so again where somebody else was faster.
/// let more = |cents: i64| cents.checked_add(50);
/// assert_eq!(ACCOUNTS.on(&mut connection).modify("ann", CENTS, more).await?, Written::Done);
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Versioned {
    table: TableName,
    id: Column,
    version: Column,
}

impl Versioned {
    /// Creates the guard from the table, the column that identifies its rows, which must have a unique key, and the
    /// column of versions.
    ///
    /// # Panics
    ///
    /// Panics if one of them is not a valid name; see [`StateMachine::new`](super::StateMachine::new).
    #[track_caller]
    pub const fn new(table: &'static str, id: &'static str, version: &'static str) -> Self {
        Self { table: TableName::new(table), id: Column::new(id), version: Column::new(version) }
    }

    /// Begins a write on this connection, in its transaction if there is one.
    pub fn on<'v, C: Connection>(&self, connection: &'v mut C) -> Write<'v, C> {
        Write { rows: *self, connection, changes: Values::new(), conditions: Values::new(), tries: TRIES }
    }
}

/// A write of [`Versioned`].
#[must_use = "nothing is written before `write` or `modify`"]
pub struct Write<'v, C: Connection> {
    rows: Versioned,
    connection: &'v mut C,
    changes: Values<'v, C>,
    conditions: Values<'v, C>,
    tries: usize,
}

impl<'v, C: Connection> Write<'v, C> {
    /// Sets a column to this value.
    pub fn set<V: Bind<C> + 'v>(mut self, column: Column, value: V) -> Self {
        self.changes.push(Form::Set, column, value);
        self
    }

    /// Adds this value to a column.
    ///
    /// If the sum may overflow the column's type, use [`modify`](Self::modify) with `checked_add`: PostgreSQL and
    /// MariaDB report an error, and SQLite goes on with a floating-point number.
    pub fn add<V: Bind<C> + 'v>(mut self, column: Column, value: V) -> Self {
        self.changes.push(Form::Plus, column, value);
        self
    }

    /// Subtracts this value from a column, which has to be at least as much: see [`at_least`](Self::at_least).
    ///
    /// A value less than zero would be added: check where it comes from.
    pub fn take<V: Bind<C> + 'v>(mut self, column: Column, value: V) -> Self {
        self.changes.push(Form::Minus, column, value.clone());
        self.at_least(column, value)
    }

    /// Requires a column to be this much or more. If it is less, nothing is written: [`Written::Refused`].
    pub fn at_least<V: Bind<C> + 'v>(mut self, column: Column, value: V) -> Self {
        self.conditions.push(Form::AtLeast, column, value);
        self
    }

    /// Sets how often [`modify`](Self::modify) reads and writes at most; at least once. Default: five times.
    pub fn tries(mut self, tries: usize) -> Self {
        self.tries = tries;
        self
    }

    /// Writes to the row of this id, if it still has this version.
    ///
    /// This is one `UPDATE … SET version = version + 1 WHERE id = ? AND version = ?`. If no row was written, a second
    /// statement finds out why, as with [`transition`](super::Move::transition).
    ///
    /// The version has to come from the same read as the values. After [`Written::Stale`], read both anew, and in a
    /// transaction on MariaDB with `FOR UPDATE`: a plain `SELECT` would return the same row again.
    ///
    /// # Errors
    ///
    /// Returns an error if the database does, such as for a deadlock or a serialization failure: roll back, and begin
    /// anew. It is also an error if several rows have the id. A future that is dropped may have written.
    pub async fn write<I: Bind<C>>(mut self, id: I, version: i64) -> sqlx::Result<Written> {
        self.written(id, version).await
    }

    /// Reads a column of the row of this id, and writes what `change` returns for it. If somebody else has written in
    /// between, it reads anew, and gives up with [`Written::Stale`] after a [number of tries](Self::tries).
    ///
    /// If `change` returns `None`, nothing is written: [`Written::Refused`]. It may be called several times, and sees
    /// one column; for a change that depends on several columns, use [`write`](Self::write). A second read locks the
    /// row, so that in a transaction the second write succeeds.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`write`](Self::write).
    pub async fn modify<I, V>(
        mut self,
        id: I,
        column: Column,
        mut change: impl FnMut(V) -> Option<V>,
    ) -> sqlx::Result<Written>
    where
        I: Bind<C>,
        V: Bind<C> + for<'r> Decode<'r, C::Database> + 'v,
    {
        for again in 0..self.tries.max(1) {
            let text = self.read(id.clone(), column, again > 0)?;
            let Some(row) = text.fetch(self.connection).await? else { return Ok(Written::Missing) };
            let (version, value) = (C::number(&row, 0)?, C::get(&row, 1)?);
            let Some(value) = change(value) else { return Ok(Written::Refused) };
            self.changes.push(Form::Set, column, value);
            match self.written(id.clone(), version).await? {
                Written::Stale => self.changes.pop(),
                written => return Ok(written),
            }
        }
        Ok(Written::Stale)
    }

    async fn written<I: Bind<C>>(&mut self, id: I, version: i64) -> sqlx::Result<Written> {
        let Versioned { table, id: column, .. } = self.rows;
        let mut tries = TRIES;
        loop {
            let text = self.update(id.clone(), version)?;
            match text.change(self.connection).await? {
                0 => {}
                1 => return Ok(Written::Done),
                _ => return Err(several(table, column)),
            }
            let text = self.look(id.clone())?;
            let Some(row) = text.fetch(self.connection).await? else { return Ok(Written::Missing) };
            let (is, allowed) = (C::number(&row, 0)?, C::number(&row, 1)? != 0);
            tries -= 1;
            match (is == version, allowed) {
                (true, false) => return Ok(Written::Refused),
                // The conditions were not met at the time of the write.
                (true, true) if tries > 0 => {}
                _ => return Ok(Written::Stale),
            }
        }
    }

    fn update<I: Bind<C>>(&self, id: I, was: i64) -> sqlx::Result<Text<C>> {
        let Versioned { table, id: column, version } = self.rows;
        let mut text = Text::new("UPDATE ");
        text.table(table).sql(" SET ").column(version).sql(" = ").column(version).sql(" + 1");
        self.changes.write(&mut text, ", ")?;
        text.sql(" WHERE ").column(column).sql(" = ").value(id)?;
        text.sql(" AND ").column(version).sql(" = ").number(was)?;
        self.conditions.write(&mut text, " AND ")?;
        Ok(text)
    }

    /// Returns the statement that reads the version and whether the conditions are met.
    fn look<I: Bind<C>>(&self, id: I) -> sqlx::Result<Text<C>> {
        let Versioned { table, id: column, version } = self.rows;
        let mut text = Text::new("SELECT ");
        text.cast(version, C::NUMBER).sql(", CAST(CASE WHEN 1 = 1");
        self.conditions.write(&mut text, " AND ")?;
        text.sql(" THEN 1 ELSE 0 END AS ").sql(C::NUMBER).sql(") FROM ").table(table);
        text.sql(" WHERE ").column(column).sql(" = ").value(id)?.sql(C::LOCKING);
        Ok(text)
    }

    /// Returns the statement that reads the version and the column.
    fn read<I: Bind<C>>(&self, id: I, of: Column, locking: bool) -> sqlx::Result<Text<C>> {
        let Versioned { table, id: column, version } = self.rows;
        let mut text = Text::new("SELECT ");
        text.cast(version, C::NUMBER).sql(", ").column(of).sql(" FROM ").table(table);
        text.sql(" WHERE ").column(column).sql(" = ").value(id)?.sql(if locking { C::LOCKING } else { "" });
        Ok(text)
    }
}

impl fmt::Debug for Versioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versioned")
            .field("table", &self.table.name())
            .field("id", &self.id.name())
            .field("version", &self.version.name())
            .finish()
    }
}

impl<C: Connection> fmt::Debug for Write<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Write").field("of", &self.rows).finish_non_exhaustive()
    }
}
