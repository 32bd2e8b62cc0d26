//! Statements for other database crates: the text, and the values in the order of its placeholders.

use std::fmt;

use crate::{
    store::Granted,
    value::{Claim, RecordKey, Settlement},
};

use super::{
    SqlStore,
    driver::{SqlDatabase, Value},
    statement::Statement,
    store::values::{Marks, bytes, time},
};

/// A statement for any driver: its text, and the values of its parameters in order.
///
/// The parameters are `$1`, `$2` and so on in PostgreSQL and SQLite, and `?` in MariaDB. The number of rows that the
/// statement has changed shows its result: one if it took effect, none if it did not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SqlStatement {
    /// The text, with the name of the store's table in it.
    pub text: String,
    /// A value for each parameter.
    pub values: Vec<SqlValue>,
}

/// A value of an [`SqlStatement`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SqlValue {
    /// A number: `BIGINT`, in SQLite `INTEGER`.
    Int(i64),
    /// A truth value: `BOOLEAN`. For an SQLite driver without truth values, bind 0 and 1.
    Bool(bool),
    /// A text or `NULL`: `TEXT`.
    Text(Option<String>),
    /// Bytes or `NULL`: `BYTEA`, in MariaDB and SQLite `BLOB`.
    Bytes(Option<Vec<u8>>),
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Returns the statement that settles a claim, to be executed by a driver of the application's own in a transaction
    /// of its own, as the last step before the commit.
    ///
    /// It is the equivalent of [`settle_in`](Self::settle_in) for database crates other than `sqlx` 0.9. If it changes
    /// one row, commit: the effect and the record are committed together. If it changes none, roll back: the claim was
    /// lost to another request, or the record is settled already. After the commit, the layer finds the record settled
    /// by its own claim and leaves it so.
    ///
    /// ```
    /// use tower_idempotency::{Operation, PostgresStore, reconcile::Payload, sql::{SqlStatement, SqlValue}};
    ///
    /// fn last_step(store: &PostgresStore, operation: &Operation, payload: Payload) -> SqlStatement {
    ///     store.settle_statement(operation.record_key(), &operation.settlement(payload))
    /// }
    /// ```
    #[must_use]
    pub fn settle_statement(&self, key: &RecordKey, settlement: &Settlement) -> SqlStatement {
        let (id, claimant) = (self.space.id(key), settlement.claimant.to_bytes());
        let what = [Value::Bytes(settlement.payload.as_deref()), time(settlement.retention)];
        let values = [&what[..], &[bytes(&id), bytes(&claimant)]].concat();
        SqlStatement::new(&self.shared.statements.settle, &values)
    }

    /// Returns the statement that claims a key, to be executed by a driver of the application's own as the first step
    /// of its own transaction; [`settle_statement`](Self::settle_statement) is the last one.
    ///
    /// If it changes one row, the key is claimed, and nobody else sees that before the commit. If it changes none, roll
    /// back and ask the store: the record is settled ([`inspect`](crate::store::StoreAdmin::inspect) has the answer),
    /// or another transaction holds the key. On PostgreSQL and MariaDB the statement does not wait for a lock; on
    /// MariaDB it fails with error 1205 if another transaction holds the key. On SQLite begin the transaction with
    /// `BEGIN IMMEDIATE`.
    ///
    /// It claims only free keys: a record that an earlier attempt has left released or lapsed is claimed by
    /// [`Store::claim`](crate::store::Store::claim). On MariaDB an expired record blocks the key until it is purged.
    #[must_use]
    pub fn claim_statement(&self, key: &RecordKey, claim: &Claim) -> SqlStatement {
        let id = self.space.id(key);
        let marks = Marks::of(claim, Granted::first(claim));
        let mut values = self.fresh(&id, key, claim, &marks);
        if D::LOCKS_BY_NUMBER {
            values.push(Value::Int(self.shared.table.lock(&id)));
        }
        SqlStatement::new(&self.shared.statements.claim_in, &values)
    }
}

impl SqlStatement {
    fn new(statement: &Statement, values: &[Value<'_>]) -> Self {
        Self { text: statement.sql.as_str().to_owned(), values: values.iter().copied().map(SqlValue::new).collect() }
    }
}

impl SqlValue {
    fn new(value: Value<'_>) -> Self {
        match value {
            Value::Int(number) => Self::Int(number),
            Value::Flag(flag) => Self::Bool(flag),
            Value::Text(text) => Self::Text(text.map(str::to_owned)),
            Value::Bytes(bytes) => Self::Bytes(bytes.map(<[u8]>::to_vec)),
        }
    }
}

/// Omits keys and answers.
impl fmt::Debug for SqlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "Int({number})"),
            Self::Bool(flag) => write!(f, "Bool({flag})"),
            Self::Text(text) => write!(f, "Text({:?} bytes)", text.as_ref().map(String::len)),
            Self::Bytes(bytes) => write!(f, "Bytes({:?} bytes)", bytes.as_ref().map(Vec::len)),
        }
    }
}
