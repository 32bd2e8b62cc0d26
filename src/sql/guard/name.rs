use crate::sql::table::is_identifier;

/// PostgreSQL truncates longer names; MySQL allows one byte more.
const MAX_BYTES: usize = 63;

/// The name of a column, checked when it is created, since it becomes part of statements.
///
/// A constant is checked by the compiler.
///
/// ```
/// use tower_idempotency::sql::guard::Column;
///
/// const BALANCE: Column = Column::new("balance_cents");
/// ```
///
/// ```compile_fail
/// # use tower_idempotency::sql::guard::Column;
/// const BALANCE: Column = Column::new("balance; DROP TABLE accounts");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column(&'static str);

impl Column {
    /// Creates a column from its name as the database keeps it. The name is quoted, so its case matters on PostgreSQL.
    ///
    /// # Panics
    ///
    /// Panics if the name is not made of letters, digits and underscores, at most 63, or begins with a digit.
    #[track_caller]
    pub const fn new(name: &'static str) -> Self {
        assert!(
            is_identifier(name, MAX_BYTES),
            "a column's name is letters, digits and underscores, at most 63, with no digit in front"
        );
        Self(name)
    }

    pub(super) const fn name(self) -> &'static str {
        self.0
    }
}

/// The name of a table, after its schema and a dot if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableName(&'static str);

impl TableName {
    #[track_caller]
    pub(super) const fn new(name: &'static str) -> Self {
        assert!(
            is_table(name),
            "a table's name is letters, digits and underscores, at most 63, with no digit in front, behind a schema's \
             name and a dot if there is one"
        );
        Self(name)
    }

    pub(super) fn parts(self) -> impl Iterator<Item = &'static str> {
        self.0.split('.')
    }

    pub(super) const fn name(self) -> &'static str {
        self.0
    }
}

const fn is_table(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'.' {
            let (schema, rest) = name.split_at(at);
            let (_, table) = rest.split_at(1);
            return is_identifier(schema, MAX_BYTES) && is_identifier(table, MAX_BYTES);
        }
        at += 1;
    }
    is_identifier(name, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn names_are_checked() {
        for name in ["orders", "_o", "Order", "shop.orders", "o2"] {
            assert!(is_table(name), "{name}");
        }
        let long = "x".repeat(64);
        for name in ["", ".", "a.", ".a", "a.b.c", "2o", "a b", "a\"b", "a`b", "a;--", "ä", "a\0", &long] {
            assert!(!is_table(name), "{name}");
        }
        assert!(catch_unwind(|| Column::new("shop.orders")).is_err());
        assert!(catch_unwind(|| TableName::new("a\"b")).is_err());
    }
}
