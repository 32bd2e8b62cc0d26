use std::future::Future;

use sqlx::{Database, Decode, Encode, Type};

pub(super) type Arguments<C> = <<C as Session>::Database as Database>::Arguments;
pub(super) type Row<C> = <<C as Session>::Database as Database>::Row;

/// A connection on which guards are executed: `sqlx::PgConnection`, `sqlx::MySqlConnection`, `sqlx::SqliteConnection`.
///
/// Write `&mut *tx` for a [`Tx`](crate::sql::Tx) of the layer's or a `sqlx::Transaction`, and `&mut *connection` for
/// one of a pool. It is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connection of the `sqlx` that `tower-idempotency` uses",
    label = "not a connection of sqlx 0.9",
    note = "a transaction and a connection from a pool are dereferenced: `.on(&mut *tx)`",
    note = "this crate works with sqlx 0.9: write `sqlx = \"0.9\"` in your Cargo.toml, with the features that you need",
    note = "`cargo tree -i sqlx-core` shows the versions that are there; two of them have nothing in common"
)]
pub trait Connection: Session {}

/// A value that can be bound to a statement of a database: any type that `sqlx` can encode for it and that is `Clone`.
///
/// It is implemented for all such types.
pub trait Bind<C: Connection>: for<'q> Encode<'q, C::Database> + Type<C::Database> + Clone + Send {}

impl<C: Connection, V> Bind<C> for V where V: for<'q> Encode<'q, C::Database> + Type<C::Database> + Clone + Send {}

/// What differs between the databases.
pub trait Session: Sized + Send {
    /// Its driver.
    type Database: Database<Connection = Self>;
    /// The quote around names.
    const QUOTE: char;
    /// The type as which text is read, whatever the type of its column.
    const TEXT: &'static str;
    /// The type as which numbers are read.
    const NUMBER: &'static str;
    /// The clause that makes a read see what is committed now, and locks it until the transaction ends.
    const LOCKING: &'static str;
    /// The same clause with a lock that others may share.
    const SHARING: &'static str;
    /// Whether a prepared statement is found by its text alone, and cannot take values of other types than it was
    /// prepared with.
    const PREPARES_TYPES: bool;
    /// Whether it can skip a row that exists already. Other databases return an error, which leaves the transaction as
    /// it was.
    const LEAVES_OUT: bool;

    /// Binds a word whose column may be an enumeration of the database's.
    fn bind_word(arguments: &mut Arguments<Self>, word: &'static str) -> sqlx::Result<()>;

    /// Binds a number.
    fn bind_number(arguments: &mut Arguments<Self>, number: i64) -> sqlx::Result<()>;

    /// Sends a statement that changes rows, and returns how many.
    fn change(&mut self, sql: String, arguments: Arguments<Self>) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// Sends a statement that reads a row.
    fn fetch(
        &mut self,
        sql: String,
        arguments: Arguments<Self>,
    ) -> impl Future<Output = sqlx::Result<Option<Row<Self>>>> + Send;

    /// Reads a column.
    fn get<T>(row: &Row<Self>, at: usize) -> sqlx::Result<T>
    where
        T: for<'r> Decode<'r, Self::Database> + Type<Self::Database>;

    /// Reads a column of numbers.
    fn number(row: &Row<Self>, at: usize) -> sqlx::Result<i64>;

    /// Reads a column of text.
    fn word(row: &Row<Self>, at: usize) -> sqlx::Result<String>;
}

macro_rules! session {
    ($connection:ty, $database:ty, $bind_word:expr, {$($constants:tt)*}) => {
        impl Connection for $connection {}

        impl Session for $connection {
            type Database = $database;
            $($constants)*

            fn bind_word(arguments: &mut Arguments<Self>, word: &'static str) -> sqlx::Result<()> {
                sqlx::Arguments::add(arguments, $bind_word(word)).map_err(sqlx::Error::Encode)
            }

            fn bind_number(arguments: &mut Arguments<Self>, number: i64) -> sqlx::Result<()> {
                sqlx::Arguments::add(arguments, number).map_err(sqlx::Error::Encode)
            }

            async fn change(&mut self, sql: String, arguments: Arguments<Self>) -> sqlx::Result<u64> {
                let query = sqlx::query_with::<$database, _>(sqlx::AssertSqlSafe(sql), arguments);
                Ok(query.execute(self).await?.rows_affected())
            }

            async fn fetch(&mut self, sql: String, arguments: Arguments<Self>) -> sqlx::Result<Option<Row<Self>>> {
                sqlx::query_with::<$database, _>(sqlx::AssertSqlSafe(sql), arguments).fetch_optional(self).await
            }

            fn get<T>(row: &Row<Self>, at: usize) -> sqlx::Result<T>
            where
                T: for<'r> Decode<'r, $database> + Type<$database>,
            {
                sqlx::Row::try_get(row, at)
            }

            fn number(row: &Row<Self>, at: usize) -> sqlx::Result<i64> {
                Self::get(row, at)
            }

            fn word(row: &Row<Self>, at: usize) -> sqlx::Result<String> {
                Self::get(row, at)
            }
        }
    };
}

#[cfg(feature = "postgres")]
session!(sqlx::PgConnection, sqlx::Postgres, word::Word, {
    const QUOTE: char = '"';
    const TEXT: &'static str = "TEXT";
    const NUMBER: &'static str = "BIGINT";
    const LOCKING: &'static str = " FOR UPDATE";
    const SHARING: &'static str = " FOR SHARE";
    const PREPARES_TYPES: bool = true;
    const LEAVES_OUT: bool = true;
});

#[cfg(feature = "mysql")]
session!(sqlx::MySqlConnection, sqlx::MySql, |word| word, {
    const QUOTE: char = '`';
    const TEXT: &'static str = "CHAR";
    const NUMBER: &'static str = "SIGNED";
    const LOCKING: &'static str = " FOR UPDATE";
    const SHARING: &'static str = " LOCK IN SHARE MODE";
    const PREPARES_TYPES: bool = false;
    // `INSERT IGNORE` would also skip a row that breaks a foreign key, and truncate a number that is too long.
    const LEAVES_OUT: bool = false;
});

// Once a transaction has tried to write, no other transaction can write.
#[cfg(feature = "sqlite")]
session!(sqlx::SqliteConnection, sqlx::Sqlite, |word| word, {
    const QUOTE: char = '"';
    const TEXT: &'static str = "TEXT";
    const NUMBER: &'static str = "INTEGER";
    const LOCKING: &'static str = "";
    const SHARING: &'static str = "";
    const PREPARES_TYPES: bool = false;
    const LEAVES_OUT: bool = true;
});

#[cfg(feature = "postgres")]
mod word {
    use sqlx::{
        Encode, Postgres, Type,
        encode::IsNull,
        error::BoxDynError,
        postgres::{PgArgumentBuffer, PgTypeInfo, types::Oid},
    };

    /// A word whose type the server infers from the column, which may be an enumeration.
    pub(super) struct Word(pub(super) &'static str);

    impl Type<Postgres> for Word {
        fn type_info() -> PgTypeInfo {
            PgTypeInfo::with_oid(Oid(0))
        }
    }

    impl Encode<'_, Postgres> for Word {
        fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
            Encode::<Postgres>::encode(self.0, buffer)
        }
    }
}
