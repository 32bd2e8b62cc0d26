//! A short history of each store. `HISTORY_OPERATIONS` makes it longer, `HISTORY_SEED` another one.

use std::{
    env,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

fn plays(store: &str) {
    let operations = env::var("HISTORY_OPERATIONS").unwrap_or_else(|_| "300".into());
    let seed = env::var("HISTORY_SEED")
        .unwrap_or_else(|_| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().to_string());
    let folder = format!("{}/{store}", env!("CARGO_TARGET_TMPDIR"));
    let mut play = Command::new(env!("CARGO_BIN_EXE_histories"));
    play.args(["play", store, "--operations", &operations, "--seed", &seed, "--folder", &folder]);
    let output = play.output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn on_redis() {
    plays("redis");
}

#[test]
fn on_postgres() {
    plays("postgres");
}

#[test]
fn on_mariadb() {
    plays("mariadb");
}
