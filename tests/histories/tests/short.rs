//! A short history of each store, and what a service holds after little has come and gone. `HISTORY_SEED` makes it
//! another history; `scripts/soak` plays longer ones.

use std::{
    env,
    process::{Command, Output},
    time::{SystemTime, UNIX_EPOCH},
};

/// Runs the program, with what it writes in a folder of the target.
fn histories(arguments: &[&str], folder: &str) -> Output {
    let folder = format!("{}/{folder}", env!("CARGO_TARGET_TMPDIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_histories")).args(arguments).args(["--folder", &folder]).output();
    let output = output.unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn play(store: &str, operations: &str) -> Output {
    let today = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().to_string();
    let seed = env::var("HISTORY_SEED").unwrap_or_else(|_| today());
    histories(&["play", store, "--operations", operations, "--seed", &seed], store)
}

#[test]
fn nothing_is_wrong_on_redis() {
    assert!(play("redis", "300").status.success());
}

/// What a failover loses has its cause there.
#[test]
fn nothing_is_wrong_behind_sentinels() {
    assert!(play("redis-sentinel", "300").status.success());
}

#[test]
fn nothing_is_wrong_on_postgres() {
    assert!(play("postgres", "300").status.success());
}

#[test]
fn nothing_is_wrong_on_mariadb() {
    assert!(play("mariadb", "300").status.success());
}

/// So that it is known that the checker finds something.
#[test]
fn a_store_in_the_memory_of_each_service_is_found_out() {
    let output = play("memory", "100");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    for rule in ["an effect again without a cause", "at most once, and run twice", "a run after the answer was kept"] {
        assert!(said.contains(rule), "{rule}");
    }
}

fn holds_nothing(store: &str) {
    let traffic = ["--keys", "2000", "--waiters", "500", "--background", "100", "--slow", "50", "--work", "500"];
    let rounds = ["--rounds", "2", "--restart", "4"];
    let arguments = [&["resources", store], &traffic[..], &rounds].concat();
    assert!(histories(&arguments, &format!("resources-{store}")).status.success());
}

#[test]
fn a_service_on_redis_holds_nothing_that_is_over() {
    holds_nothing("redis");
}

#[test]
fn a_service_on_postgres_holds_nothing_that_is_over() {
    holds_nothing("postgres");
}
