//! Rows as each version wrote them.

use std::fs;

use super::{
    run, store,
    written_formats::{new_version, read, versions, write},
};
use crate::database::TestDatabase;

/// The columns of a table, and whether they hold bytes.
const COLUMNS: [(&str, bool); 27] = [
    ("id", true),
    ("namespace", false),
    ("route", false),
    ("scope", false),
    ("record_key", false),
    ("version", false),
    ("state", false),
    ("attempt", false),
    ("claimant", true),
    ("fingerprint", true),
    ("caller", true),
    ("secret", false),
    ("origin_caller", true),
    ("origin_secret", false),
    ("caller_is_new", false),
    ("trace", true),
    ("at_most_once", false),
    ("takeover", false),
    ("created_ms", false),
    ("changed_ms", false),
    ("lease_ends_ms", false),
    ("expires_ms", false),
    ("token_expires_ms", false),
    ("purpose", false),
    ("principal", false),
    ("payload", true),
    ("note", true),
];

pub(super) async fn rows_of_each_version_are_read<D: TestDatabase>() {
    for version in versions() {
        let (_place, store) = store::<D>().await;
        let rows = fs::read_to_string(version.join(format!("{}.sql", D::MIGRATIONS))).unwrap();
        let pool = store.pool();
        for row in rows.lines() {
            run::<D>(pool, row).await;
        }
        read(store).await;
    }
}

/// Runs for a new version only: then `FORMATS` names it.
pub(super) async fn the_fixtures_of_a_new_version<D: TestDatabase>() {
    if std::env::var_os("FORMATS").is_none() {
        return;
    }
    let (_place, store) = store::<D>().await;
    write(store.clone()).await;
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> = COLUMNS.iter().map(|&(name, bytes)| literal::<D>(name, bytes)).collect();
    let separator = if D::MIGRATIONS == "mysql" { ", ', ', " } else { " || ', ' || " };
    let values = values.join(separator);
    let values = if D::MIGRATIONS == "mysql" { format!("CONCAT({values})") } else { values };
    let text = format!("SELECT {values} FROM idempotency_records ORDER BY record_key");
    let into = format!("INSERT INTO idempotency_records ({}) VALUES", names.join(", "));
    let rows: Vec<_> = D::lines(store.pool(), &text).await.iter().map(|row| format!("{into} ({row});\n")).collect();
    fs::write(new_version().join(format!("{}.sql", D::MIGRATIONS)), rows.concat()).unwrap();
}

/// Returns an expression whose value is the literal of a column.
fn literal<D: TestDatabase>(name: &str, bytes: bool) -> String {
    let value = match (D::MIGRATIONS, bytes) {
        ("postgres", true) => format!("'decode(''' || encode({name}, 'hex') || ''', ''hex'')'"),
        ("postgres", false) => format!("quote_literal({name}::text)"),
        ("mysql", true) => format!("CONCAT('X''', HEX({name}), '''')"),
        ("mysql", false) => format!("CONCAT('''', REPLACE({name}, '\\\\', '\\\\\\\\'), '''')"),
        _ => format!("quote({name})"),
    };
    format!("COALESCE({value}, 'NULL')")
}
