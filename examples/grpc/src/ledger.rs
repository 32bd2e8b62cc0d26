//! The transfers that were made, in a file to which lines are added, or in a table.
//!
//! The file stands for a bank that knows nothing of the store: a transfer and its record cannot be one step. It can be
//! asked for a transfer, which is what an attempt after a crash does.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use sqlx::PgConnection;

use crate::messages::Transfer;

/// A ledger in a file: a line for each transfer, with its key, the attempt, the account and the amount.
#[derive(Debug)]
pub struct FileLedger(Mutex<Lines>);

#[derive(Debug)]
struct Lines {
    file: File,
    /// The key of each line.
    keys: Vec<String>,
}

impl FileLedger {
    /// Opens the file, and reads what is there.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened or read.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let keys = text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        Ok(Self(Mutex::new(Lines { file, keys })))
    }

    /// Returns the number of a transfer that was made.
    pub fn find(&self, key: &str) -> Option<u64> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.keys.iter().position(|known| known == key).map(|at| at as u64 + 1)
    }

    /// Makes a transfer, and returns its number.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn add(&self, key: &str, attempt: u32, transfer: &Transfer) -> std::io::Result<u64> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.file.write_all(format!("{key} {attempt} {} {}\n", transfer.to, transfer.amount).as_bytes())?;
        lines.keys.push(key.to_owned());
        Ok(lines.keys.len() as u64)
    }

    /// Returns how many transfers there are.
    pub fn len(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys.len() as u64
    }

    /// Returns whether there is no transfer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The table of the transfers. A key may be there twice: only the layer prevents it.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS transfers (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,
    attempt integer NOT NULL,
    account text NOT NULL,
    amount bigint NOT NULL
)";

/// Makes a transfer in the transaction of its call, and returns its number.
///
/// # Errors
///
/// Returns an error if the database does.
pub async fn add_row(
    connection: &mut PgConnection,
    key: &str,
    attempt: u32,
    transfer: &Transfer,
) -> Result<u64, sqlx::Error> {
    let insert = "INSERT INTO transfers (key, attempt, account, amount) VALUES ($1, $2, $3, $4) RETURNING number";
    let (number,): (i64,) = sqlx::query_as(insert)
        .bind(key)
        .bind(i32::try_from(attempt).unwrap_or(i32::MAX))
        .bind(&transfer.to)
        .bind(i64::try_from(transfer.amount).unwrap_or(i64::MAX))
        .fetch_one(connection)
        .await?;
    Ok(number.unsigned_abs())
}
