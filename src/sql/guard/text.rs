use std::fmt;

use sqlx::{Arguments as _, Error, TypeInfo as _};

use super::{
    connection::{Arguments, Bind, Connection, Row, Session},
    name::{Column, TableName},
};

/// A statement that is being written, with quoted names and bound values.
pub(super) struct Text<C: Session> {
    sql: String,
    arguments: Arguments<C>,
    /// The types of the values, if they have to distinguish statements.
    types: String,
}

impl<C: Session> Text<C> {
    pub(super) fn new(start: &str) -> Self {
        Self { sql: start.into(), arguments: Arguments::<C>::default(), types: String::new() }
    }

    /// Sends the statement, which changes rows, and returns how many.
    pub(super) async fn change(self, connection: &mut C) -> sqlx::Result<u64> {
        let (sql, arguments) = self.into_parts();
        connection.change(sql, arguments).await
    }

    /// Sends the statement, which reads a row.
    pub(super) async fn fetch(self, connection: &mut C) -> sqlx::Result<Option<Row<C>>> {
        let (sql, arguments) = self.into_parts();
        connection.fetch(sql, arguments).await
    }

    fn into_parts(mut self) -> (String, Arguments<C>) {
        if !self.types.is_empty() {
            self.sql = format!("{} /*{}*/", self.sql, self.types);
        }
        (self.sql, self.arguments)
    }

    pub(super) fn sql(&mut self, text: &str) -> &mut Self {
        self.sql.push_str(text);
        self
    }

    pub(super) fn table(&mut self, table: TableName) -> &mut Self {
        for (at, part) in table.parts().enumerate() {
            self.sql(if at > 0 { "." } else { "" }).quoted(part);
        }
        self
    }

    pub(super) fn column(&mut self, column: Column) -> &mut Self {
        self.quoted(column.name())
    }

    /// Writes a column, read as another type.
    pub(super) fn cast(&mut self, column: Column, to: &str) -> &mut Self {
        self.sql("CAST(").column(column).sql(" AS ").sql(to).sql(")")
    }

    pub(super) fn word(&mut self, word: &'static str) -> sqlx::Result<&mut Self> {
        C::bind_word(&mut self.arguments, word)?;
        self.placeholder()
    }

    pub(super) fn number(&mut self, number: i64) -> sqlx::Result<&mut Self> {
        C::bind_number(&mut self.arguments, number)?;
        self.placeholder()
    }

    fn quoted(&mut self, name: &str) -> &mut Self {
        self.sql.push(C::QUOTE);
        self.sql.push_str(name);
        self.sql.push(C::QUOTE);
        self
    }

    /// Writes the placeholder of the value that was added last.
    fn placeholder(&mut self) -> sqlx::Result<&mut Self> {
        self.arguments.format_placeholder(&mut self.sql).map_err(|error| Error::Encode(error.into()))?;
        Ok(self)
    }
}

impl<C: Connection> Text<C> {
    pub(super) fn value<V: Bind<C>>(&mut self, value: V) -> sqlx::Result<&mut Self> {
        if C::PREPARES_TYPES {
            let of = value.produces().unwrap_or_else(V::type_info);
            self.types.push(' ');
            self.types.extend(of.name().chars().filter(|character| character.is_alphanumeric()));
        }
        self.arguments.add(value).map_err(Error::Encode)?;
        self.placeholder()
    }
}

/// Omits the values.
impl<C: Session> fmt::Debug for Text<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.sql).finish()
    }
}

/// The use of a value.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// It stands alone.
    Alone,
    /// The column is set to it.
    Set,
    /// The column grows by it.
    Plus,
    /// The column shrinks by it.
    Minus,
    /// The column has to be at least as much.
    AtLeast,
}

type Binder<'v, C> = Box<dyn Fn(&mut Text<C>) -> sqlx::Result<()> + Send + 'v>;

/// Values of columns, for statements that are still to be written.
pub(super) struct Values<'v, C: Session>(Vec<(Form, Column, Binder<'v, C>)>);

impl<'v, C: Connection> Values<'v, C> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push<V: Bind<C> + 'v>(&mut self, form: Form, column: Column, value: V) {
        self.0.push((form, column, Box::new(move |text| text.value(value.clone()).map(drop))));
    }

    /// Removes the last value.
    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = Column> {
        self.0.iter().map(|(_, column, _)| *column)
    }

    /// Writes each value, with `before` in front.
    pub(super) fn write(&self, text: &mut Text<C>, before: &str) -> sqlx::Result<()> {
        for (form, column, bind) in &self.0 {
            text.sql(before);
            match form {
                Form::Alone => &mut *text,
                Form::Set => text.column(*column).sql(" = "),
                Form::Plus => text.column(*column).sql(" = ").column(*column).sql(" + "),
                Form::Minus => text.column(*column).sql(" = ").column(*column).sql(" - "),
                Form::AtLeast => text.column(*column).sql(" >= "),
            };
            bind(text)?;
        }
        Ok(())
    }
}

/// Returns the error that more than one row has the requested identity.
pub(super) fn several(table: TableName, id: Column) -> Error {
    Error::Protocol(format!("several rows of {} have the same {}: a guard needs a unique key", table.name(), id.name()))
}
