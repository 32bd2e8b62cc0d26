//! The example `payment_callback` stands its storm on each database.

use std::{env, process::Command};

/// Runs it. It is built with all tests; a run of these alone takes the one that was built last.
fn balances(args: &[&str]) {
    let mut path = env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/payment_callback");
    let output = Command::new(&path).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; `cargo build --examples` first", path.display()));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("The ledger balances to the cent."), "{said}");
}

#[test]
fn the_ledger_balances_on_sqlite() {
    balances(&[]);
}

#[cfg(feature = "postgres")]
#[test]
fn the_ledger_balances_on_postgres() {
    let server = crate::server::Server::postgres();
    balances(&["--store", &format!("postgres://tests:secret@127.0.0.1:{}/postgres", server.port())]);
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn the_ledger_balances_on_mariadb() {
    use sqlx::Connection as _;

    let server = crate::server::Server::mariadb();
    let url = format!("mysql://root@127.0.0.1:{}", server.port());
    let mut admin = sqlx::MySqlConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("CREATE DATABASE tests").execute(&mut admin).await.unwrap();
    balances(&["--store", &format!("{url}/tests")]);
}

#[cfg(feature = "redis")]
#[test]
fn the_ledger_balances_behind_a_front() {
    let front = crate::redis::Server::start(&[]);
    balances(&["--front", &front.url()]);
}
