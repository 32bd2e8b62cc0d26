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

/// With a database of its own.
#[cfg(any(feature = "mysql", feature = "postgres"))]
async fn balances_on<D: crate::database::TestDatabase>() {
    let place = D::place().await;
    balances(&["--store", &D::url(&place)]);
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn the_ledger_balances_on_postgres() {
    balances_on::<sqlx::Postgres>().await;
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn the_ledger_balances_on_mariadb() {
    balances_on::<sqlx::MySql>().await;
}

#[cfg(feature = "redis")]
#[test]
fn the_ledger_balances_behind_a_front() {
    let front = super::redis::Server::start(&[]);
    balances(&["--front", &front.url()]);
}
