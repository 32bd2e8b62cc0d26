//! An operation in steps, in a process that dies after any of them, and what has to hold afterwards.

use std::{
    env,
    process::{self, Command},
    time::{Duration, Instant},
};

use tower_idempotency::{
    sql::{SqlDatabase, SqlStatement, SqlStore},
    store::{Claim, Claimed, RecordKey, Settlement, State, Store, StoreAdmin},
};

const STEP: &str = "DIES_AFTER";
const MODE: &str = "MODE";
const PLACE: &str = "PLACE";
const NAME: &str = "OPERATION";

/// Short: the next process waits until a dead one's claim has lapsed.
const LEASE: Duration = Duration::from_millis(300);
const HOUR: Duration = Duration::from_secs(3600);

/// A database crate, with a connection of the application's own.
pub(crate) trait Driver: Sized {
    async fn connect(place: &str) -> Self;
    /// Executes a text without parameters.
    async fn say(&mut self, text: &str);
    /// Says how many rows the statement has changed.
    async fn execute(&mut self, statement: &SqlStatement) -> u64;
    async fn count(&mut self, text: &str) -> i64;
}

pub(crate) const EFFECTS: &str = "CREATE TABLE IF NOT EXISTS effects (name VARCHAR(80) NOT NULL)";

/// How the application works: it claims by the store and settles in its transaction, or does both in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Settles,
    ClaimsAndSettles,
}

/// Dies at the configured step, as by `kill -9`: nothing is rolled back or closed.
fn step(number: u32) {
    if env::var(STEP).is_ok_and(|step| step == number.to_string()) {
        process::abort();
    }
}

const STEPS: u32 = 6;

/// What the other process does, and nothing in this one.
pub(crate) async fn child<D: Driver, S: SqlDatabase>(store: impl AsyncFn(&str) -> SqlStore<S>) {
    let (Ok(place), Ok(mode), Ok(name)) = (env::var(PLACE), env::var(MODE), env::var(NAME)) else { return };
    let store = store(&place).await;
    let mut driver = D::connect(&place).await;
    let key = RecordKey::new("newsletter", Some("ann"), &name).unwrap();
    let began = Instant::now();
    while !attempt(&store, &mut driver, &key, mode == "ClaimsAndSettles", &name).await {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come to an end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Says whether the operation has ended.
async fn attempt<D: Driver, S: SqlDatabase>(
    store: &SqlStore<S>,
    driver: &mut D,
    key: &RecordKey,
    all: bool,
    name: &str,
) -> bool {
    let claim = Claim::new(LEASE, HOUR);
    step(0);
    if !all {
        match store.claim(key, &claim).await.unwrap() {
            Claimed::Granted(_) => {}
            Claimed::Settled(..) => return true,
            Claimed::Running { .. } => return false,
            other => panic!("{other:?}"),
        }
    }
    step(1);
    driver.say("BEGIN").await;
    if all && driver.execute(&store.claim_statement(key, &claim)).await == 0 {
        driver.say("ROLLBACK").await;
        let record = store.inspect(key).await.unwrap();
        return record.is_some_and(|record| record.state == State::Settled);
    }
    step(2);
    driver.say(&format!("INSERT INTO effects VALUES ('{name}')")).await;
    step(3);
    let settlement = Settlement::new(claim.claimant, Some("sent".into()), HOUR);
    let settled = driver.execute(&store.settle_statement(key, &settlement)).await;
    step(4);
    if settled == 0 {
        driver.say("ROLLBACK").await;
        return false;
    }
    driver.say("COMMIT").await;
    step(5);
    true
}

/// Each operation is begun by a process that dies after some step and ended by one that does not: one effect, and an
/// answer for it.
pub(crate) async fn killed_between_every_two_steps<D: Driver, S: SqlDatabase>(
    place: &str,
    child: &str,
    store: &SqlStore<S>,
) {
    store.migrate().await.unwrap();
    let mut driver = D::connect(place).await;
    driver.say(EFFECTS).await;
    for mode in [Mode::Settles, Mode::ClaimsAndSettles] {
        for dies_after in 0..STEPS {
            let name = format!("{mode:?}-{dies_after}");
            let run = |dies_after: Option<u32>| {
                let mut command = Command::new(env::current_exe().unwrap());
                command.args(["--exact", child, "--nocapture"]);
                command.env(PLACE, place).env(MODE, format!("{mode:?}")).env(NAME, &name);
                dies_after.map(|step| command.env(STEP, step.to_string()));
                command.output().unwrap()
            };
            assert!(!run(Some(dies_after)).status.success(), "{name}: it should have died");
            for _ in 0..2 {
                let output = run(None);
                let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && said.contains("1 passed"), "{name}: {said}");
            }
            let count = format!("SELECT COUNT(*) FROM effects WHERE name = '{name}'");
            assert_eq!(driver.count(&count).await, 1, "{name}");
            let key = RecordKey::new("newsletter", Some("ann"), &name).unwrap();
            let record = store.inspect(&key).await.unwrap().unwrap();
            assert_eq!((record.state, record.payload), (State::Settled, Some("sent".into())), "{name}");
        }
    }
}

/// A claim that was lost to another settles nothing, and neither does one that was never made.
pub(crate) async fn a_lost_claim_is_told<D: Driver, S: SqlDatabase>(place: &str, store: &SqlStore<S>) {
    store.migrate().await.unwrap();
    let mut driver = D::connect(place).await;
    let key = RecordKey::new("newsletter", Some("ann"), "lost").unwrap();
    let (slow, quick) = (Claim::new(Duration::ZERO, HOUR), Claim::new(LEASE, HOUR));
    let settle =
        |claim: &Claim| store.settle_statement(&key, &Settlement::new(claim.claimant, Some("sent".into()), HOUR));
    assert_eq!(driver.execute(&settle(&slow)).await, 0);
    assert!(matches!(store.claim(&key, &slow).await.unwrap(), Claimed::Granted(_)));
    assert!(matches!(store.claim(&key, &quick).await.unwrap(), Claimed::Granted(granted) if granted.takeover));
    assert_eq!(driver.execute(&settle(&slow)).await, 0);
    assert_eq!(driver.execute(&settle(&quick)).await, 1);
    assert_eq!(driver.execute(&settle(&quick)).await, 0, "once");
    assert_eq!(driver.execute(&store.claim_statement(&key, &Claim::new(LEASE, HOUR))).await, 0, "it is settled");

    // A record that has expired is as none, and nothing of it stays.
    let key = RecordKey::new("newsletter", Some("ann"), "expired").unwrap();
    store.claim(&key, &quick).await.unwrap();
    let over = Settlement::new(quick.claimant, Some("old".into()), Duration::ZERO);
    assert_eq!(driver.execute(&store.settle_statement(&key, &over)).await, 1);
    assert_eq!(driver.execute(&store.claim_statement(&key, &Claim::new(LEASE, HOUR))).await, 1);
    let record = store.inspect(&key).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempt, record.payload), (State::Running, 1, None));
}
