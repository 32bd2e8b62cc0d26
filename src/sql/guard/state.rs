use std::{fmt, marker::PhantomData};

use super::{
    RowState, Transition,
    connection::{Bind, Connection},
    name::{Column, TableName},
    text::{Form, Text, Values, several},
};

/// How often a move is tried again if it moved no row, but the row is then found in a state that allows it.
const TRIES: usize = 3;

/// Rows whose state makes legal moves only: see [`RowState`].
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// # use tower_idempotency::sql::guard::RowState;
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # enum Order { Unpaid, Paid }
/// # impl RowState for Order {
/// #     const ALL: &'static [Self] = &[Self::Unpaid, Self::Paid];
/// #     fn as_str(self) -> &'static str { if self == Self::Paid { "paid" } else { "unpaid" } }
/// #     fn may_become(self, next: Self) -> bool { (self, next) == (Self::Unpaid, Self::Paid) }
/// # }
/// use sqlx::{Connection, SqliteConnection};
/// use tower_idempotency::sql::guard::{StateMachine, Transition};
///
/// const ORDERS: StateMachine<Order> = StateMachine::new("orders", "number", "state");
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> sqlx::Result<()> {
/// # let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
/// # let schema = "CREATE TABLE orders (number TEXT PRIMARY KEY, state TEXT); INSERT INTO orders VALUES ('A-1', 'unpaid')";
/// # sqlx::raw_sql(schema).execute(&mut connection).await?;
/// let paid = ORDERS.on(&mut connection).transition("A-1", Order::Paid).await?;
/// assert_eq!(paid, Transition::Moved);
/// let again = ORDERS.on(&mut connection).transition("A-1", Order::Paid).await?;
/// assert_eq!(again, Transition::AlreadyThere);
/// let back = ORDERS.on(&mut connection).transition("A-1", Order::Unpaid).await?;
/// assert_eq!(back, Transition::Refused(Order::Paid));
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
pub struct StateMachine<S> {
    table: TableName,
    id: Column,
    state: Column,
    states: PhantomData<fn() -> S>,
}

impl<S: RowState> StateMachine<S> {
    /// Creates the guard from the table, the column that identifies its rows, which must have a unique key, and the
    /// column of states.
    ///
    /// # Panics
    ///
    /// Panics if one of them is not a valid name: letters, digits and underscores, at most 63, not beginning with a
    /// digit. The table's name may follow that of its schema and a dot. In a constant, this is a compile error.
    #[track_caller]
    pub const fn new(table: &'static str, id: &'static str, state: &'static str) -> Self {
        Self { table: TableName::new(table), id: Column::new(id), state: Column::new(state), states: PhantomData }
    }

    /// Begins a move on this connection, in its transaction if there is one.
    pub fn on<'v, C: Connection>(&self, connection: &'v mut C) -> Move<'v, S, C> {
        let machine = Self { states: PhantomData, ..*self };
        Move { machine, connection, values: Values::new() }
    }
}

/// A move of a [`StateMachine`].
#[must_use = "nothing moves before `transition`"]
pub struct Move<'v, S, C: Connection> {
    machine: StateMachine<S>,
    connection: &'v mut C,
    values: Values<'v, C>,
}

impl<'v, S: RowState, C: Connection> Move<'v, S, C> {
    /// Sets a column to this value, if the row moves.
    pub fn set<V: Bind<C> + 'v>(mut self, column: Column, value: V) -> Self {
        self.values.push(Form::Set, column, value);
        self
    }

    /// Moves the row of this id to a state, if its present state may become that one.
    ///
    /// This is one `UPDATE … WHERE id = ? AND state IN (…)`. Of any number of concurrent tries, one moves the row. If
    /// no row was moved, a second statement finds out why. It reads what is committed and locks the row, so that in a
    /// transaction its result holds until the transaction ends. Without a transaction the row may have changed again
    /// when the result arrives.
    ///
    /// # Errors
    ///
    /// Returns an error if the database does, such as for a deadlock or a serialization failure: roll back, and begin
    /// anew. It is also an error if the word in the column is not one of the states, or if several rows have the id. A
    /// future that is dropped may have moved the row.
    pub async fn transition<I: Bind<C>>(self, id: I, to: S) -> sqlx::Result<Transition<S>> {
        let StateMachine { table, id: column, .. } = self.machine;
        let mut tries = TRIES;
        loop {
            if let Some(text) = self.update(id.clone(), to)? {
                match text.change(self.connection).await? {
                    0 => {}
                    1 => return Ok(Transition::Moved),
                    _ => return Err(several(table, column)),
                }
            }
            let text = self.look(id.clone())?;
            let Some(row) = text.fetch(self.connection).await? else { return Ok(Transition::Missing) };
            let is = self.machine.state_of(&C::word(&row, 0)?)?;
            tries -= 1;
            match is {
                is if is == to => return Ok(Transition::AlreadyThere),
                is if is.may_become(to) && tries > 0 => {}
                is => return Ok(Transition::Refused(is)),
            }
        }
    }

    /// Returns the statement, or `None` if no state may become this one.
    fn update<I: Bind<C>>(&self, id: I, to: S) -> sqlx::Result<Option<Text<C>>> {
        let StateMachine { table, id: column, state, .. } = self.machine;
        let mut from = S::ALL.iter().filter(|from| **from != to && from.may_become(to));
        let Some(first) = from.next() else { return Ok(None) };
        let mut text = Text::new("UPDATE ");
        text.table(table).sql(" SET ").column(state).sql(" = ").word(to.as_str())?;
        self.values.write(&mut text, ", ")?;
        text.sql(" WHERE ").column(column).sql(" = ").value(id)?;
        text.sql(" AND ").column(state).sql(" IN (").word(first.as_str())?;
        for from in from {
            text.sql(", ").word(from.as_str())?;
        }
        text.sql(")");
        Ok(Some(text))
    }

    fn look<I: Bind<C>>(&self, id: I) -> sqlx::Result<Text<C>> {
        let StateMachine { table, id: column, state, .. } = self.machine;
        let mut text = Text::new("SELECT ");
        text.cast(state, C::TEXT).sql(" FROM ").table(table).sql(" WHERE ").column(column).sql(" = ").value(id)?;
        text.sql(C::LOCKING);
        Ok(text)
    }
}

impl<S: RowState> StateMachine<S> {
    fn state_of(&self, word: &str) -> sqlx::Result<S> {
        let unknown =
            || format!("{}.{} has the word `{word}`, which is no state", self.table.name(), self.state.name());
        S::from_text(word).ok_or_else(|| sqlx::Error::Decode(unknown().into()))
    }
}

impl<S> fmt::Debug for StateMachine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMachine")
            .field("table", &self.table.name())
            .field("id", &self.id.name())
            .field("state", &self.state.name())
            .finish()
    }
}

impl<S, C: Connection> fmt::Debug for Move<'_, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Move").field("of", &self.machine).finish_non_exhaustive()
    }
}
