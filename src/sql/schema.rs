//! The table as its `CREATE` text describes it, so that the text is the only place that lists columns and indexes.

use std::collections::HashSet;

use super::table::Table;

/// What a schema's text creates: a table, its columns, its indexes. The texts have one column a line.
pub(crate) struct Schema {
    text: String,
    columns: Vec<Part>,
    indexes: Vec<Part>,
}

/// A column or an index.
struct Part {
    name: String,
    /// A column as it is in the text, or the columns of an index.
    definition: String,
}

/// The part to be created next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The table with all its parts.
    Table(String),
    /// These columns, in one step.
    Columns(Vec<String>),
    /// An index over these columns.
    Index {
        /// Its name.
        name: String,
        /// The columns, in parentheses.
        over: String,
    },
}

impl Schema {
    /// Reads the columns and indexes of a `CREATE` text.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut columns, mut indexes) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let line = line.trim_end_matches([',', ';']);
            // PostgreSQL and SQLite create an index with a statement of its own, MariaDB within the table.
            if let Some(index) = line.strip_prefix("CREATE INDEX IF NOT EXISTS ").or(line.strip_prefix("    KEY ")) {
                indexes.extend(Part::index(index));
            } else if let Some(column) = line.strip_prefix("    ") {
                columns.extend(Part::column(column));
            }
        }
        Self { text: text.to_owned(), columns, indexes }
    }

    /// Returns those of `columns` that the text does not have, in order.
    pub(crate) fn unknown(&self, columns: HashSet<String>) -> Vec<String> {
        let is_known = |name: &str| self.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        let mut unknown: Vec<_> = columns.into_iter().filter(|name| !is_known(name)).collect();
        unknown.sort_unstable();
        unknown
    }

    /// Returns what to create next, if anything is missing. The error is the name of a column that cannot be added to a
    /// table with rows.
    pub(crate) fn missing(
        &self,
        columns: &HashSet<String>,
        indexes: &HashSet<String>,
    ) -> Result<Option<Missing>, String> {
        if columns.is_empty() {
            return Ok(Some(Missing::Table(self.text.clone())));
        }
        let missing: Vec<_> = self.columns.iter().filter(|column| !columns.contains(&column.name)).collect();
        if let Some(column) = missing.iter().find(|column| !column.can_be_added()) {
            return Err(column.name.clone());
        }
        if !missing.is_empty() {
            return Ok(Some(Missing::Columns(missing.iter().map(|column| column.definition.clone()).collect())));
        }
        let index = self.indexes.iter().find(|index| !indexes.contains(&index.name));
        Ok(index.map(|index| Missing::Index { name: index.name.clone(), over: index.definition.clone() }))
    }
}

impl Schema {
    /// Returns all that is to be created, in turn.
    pub(crate) fn all_missing(
        &self,
        mut columns: HashSet<String>,
        mut indexes: HashSet<String>,
    ) -> Result<Vec<Missing>, String> {
        let mut all = Vec::new();
        while let Some(missing) = self.missing(&columns, &indexes)? {
            match &missing {
                // The text creates the indexes too.
                Missing::Table(_) => return Ok(vec![missing]),
                Missing::Columns(_) => columns.extend(self.columns.iter().map(|column| column.name.clone())),
                Missing::Index { name, .. } => drop(indexes.insert(name.clone())),
            }
            all.push(missing);
        }
        Ok(all)
    }
}

impl Missing {
    /// Describes the change for operators.
    pub(crate) fn describe(&self, table: &Table) -> String {
        match self {
            Self::Table(_) => format!("create the table {table}"),
            Self::Columns(columns) => format!("add to the table {table}: {}", columns.join(", ")),
            Self::Index { name, over } => format!("create the index {name} on {table} {over}"),
        }
    }
}

impl Part {
    fn column(definition: &str) -> Option<Self> {
        let name = definition.split_whitespace().next()?.to_owned();
        Some(Self { name, definition: definition.to_owned() })
    }

    fn index(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(' ')?;
        let over = rest.get(rest.find('(')?..)?.to_owned();
        Some(Self { name: name.trim_matches(['"', '`']).to_owned(), definition: over })
    }

    /// Returns whether the part can be added: older processes write rows without it.
    fn can_be_added(&self) -> bool {
        !self.definition.contains("NOT NULL") || self.definition.contains("DEFAULT")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> HashSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn what_is_missing_is_created_in_turn() {
        for index in
            ["\n);\n\nCREATE INDEX IF NOT EXISTS \"t_due\" ON \"t\" (a, b);", ",\n    KEY `t_due` (a, b)\n) X;"]
        {
            let text = format!("CREATE TABLE IF NOT EXISTS t (\n    a BIGINT NOT NULL,\n    b BIGINT DEFAULT 1{index}");
            let schema = Schema::parse(&text);
            let missing = |columns: &[&str], indexes: &[&str]| schema.missing(&names(columns), &names(indexes));
            assert_eq!(missing(&[], &[]), Ok(Some(Missing::Table(text.clone()))));
            assert_eq!(missing(&["a"], &[]), Ok(Some(Missing::Columns(vec!["b BIGINT DEFAULT 1".into()]))));
            let due = Missing::Index { name: "t_due".into(), over: "(a, b)".into() };
            assert_eq!(missing(&["a", "b", "more"], &["other"]), Ok(Some(due)));
            assert_eq!(missing(&["a", "b"], &["t_due"]), Ok(None));
            assert_eq!(missing(&["b"], &[]), Err("a".into()));
            assert_eq!(schema.unknown(names(&["z", "A", "b", "c"])), ["c", "z"]);
        }
    }

    #[test]
    fn all_that_is_missing_is_described_in_the_order_of_the_changes() {
        let text =
            "CREATE TABLE t (\n    a BIGINT NOT NULL,\n    b BIGINT DEFAULT 1,\n    c TEXT,\n    KEY `t_due` (a, b)\n)";
        let (schema, table) = (Schema::parse(text), Table::new("t").unwrap());
        let described = |columns: &[&str], indexes: &[&str]| {
            let all = schema.all_missing(names(columns), names(indexes)).unwrap();
            all.iter().map(|missing| missing.describe(&table)).collect::<Vec<_>>()
        };
        assert_eq!(described(&[], &[]), ["create the table t"]);
        let changes = ["add to the table t: b BIGINT DEFAULT 1, c TEXT", "create the index t_due on t (a, b)"];
        assert_eq!(described(&["a"], &[]), changes);
        assert!(described(&["a", "b", "c"], &["t_due"]).is_empty());
        assert_eq!(schema.all_missing(names(&["b"]), names(&[])), Err("a".into()));
    }
}
