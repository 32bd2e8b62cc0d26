//! Names of tables. They become part of statements, so they are letters, digits and underscores, and nothing has to be
//! escaped.

use std::fmt;

use crate::value::{Digest, StoreError, StoreErrorKind};

/// Leaves room for the names of a table's parts, within the 63 bytes that PostgreSQL allows for a name.
const MAX_BYTES: usize = 48;

/// The name of the table of records; it is checked, since it becomes part of every statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    schema: Option<Box<str>>,
    name: Box<str>,
}

impl Table {
    /// Creates it from `name` or `schema.name`.
    pub(crate) fn new(name: &str) -> Result<Self, StoreError> {
        let (schema, name) = match name.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, name),
        };
        if schema.into_iter().chain([name]).all(|name| is_identifier(name, MAX_BYTES)) {
            return Ok(Self { schema: schema.map(Into::into), name: name.into() });
        }
        let message = "a table's name is letters, digits and underscores, at most 48, with no digit in front, \
                       behind a schema's name and a dot if there is one";
        Err(StoreError::new(StoreErrorKind::Misconfigured, message).without_effect())
    }

    /// Creates one whose name is a constant of this crate.
    pub(crate) fn named(name: &'static str) -> Self {
        Self { schema: None, name: name.into() }
    }

    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name for statements, in quotes: it may be a keyword of SQL.
    pub(crate) fn quoted(&self, quote: char) -> String {
        match &self.schema {
            Some(schema) => format!("{quote}{schema}{quote}.{quote}{}{quote}", self.name),
            None => format!("{quote}{}{quote}", self.name),
        }
    }

    /// Returns the number of the lock on a record, if locks have numbers. A hash makes it unlikely that an application
    /// uses the same number. If two keys have the same number, a claim of one is answered as running while the other
    /// runs.
    pub(crate) fn lock(&self, id: &[u8]) -> i64 {
        let mut digest = Digest::new();
        digest.part(b"tower-idempotency");
        digest.part(self.to_string().as_bytes());
        digest.part(id);
        digest.finish().iter().take(8).fold(0, |number, &byte| number << 8 | i64::from(byte))
    }

    pub(crate) fn index(&self, quote: char) -> String {
        format!("{quote}{}_due{quote}", self.name)
    }

    /// Returns the name of a second index, by key.
    pub(crate) fn key_index(&self, quote: char) -> String {
        format!("{quote}{}_key{quote}", self.name)
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::named("idempotency_records")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Returns whether a name consists of at most `most` letters, digits and underscores and does not begin with a digit.
pub(crate) const fn is_identifier(name: &str, most: usize) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && bytes.len() <= most && !bytes[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for name in ["records", "_r", "Order", "shop.records", "r2"] {
            assert_eq!(Table::new(name).unwrap().to_string(), name);
        }
        let long = "x".repeat(49);
        for name in ["", ".", "a.", ".a", "a.b.c", "2r", "a b", "a\"b", "a`b", "a;--", "ä", "a\0", &long] {
            assert!(Table::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_stand_in_quotes() {
        let table = Table::new("shop.order").unwrap();
        assert_eq!((&*table.quoted('"'), &*table.index('`')), ("\"shop\".\"order\"", "`order_due`"));
    }
}
