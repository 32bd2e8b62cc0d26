//! Applications whose clocks are five minutes off, each a process of its own: this test binary, started again with
//! `libfaketime` in between it and the clock of the machine. Timers go by the monotonic clock, which stays as it is.

use std::{
    env,
    path::Path,
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tower_idempotency::{
    StoreError,
    store::{Claim, Claimed, StoreAdmin},
};

use super::races::{MINUTE, claim, key, replays, settled};

const OFF: i64 = 300;
const DO: &str = "TOWER_IDEMPOTENCY_DO";
const URL: &str = "TOWER_IDEMPOTENCY_URL";
const TRUE_TIME: &str = "TOWER_IDEMPOTENCY_TRUE_TIME";

/// What one of them does in the other process; a test of this name does it there, and nothing if it is not asked.
pub(crate) async fn child<S: StoreAdmin>(connect: impl AsyncFnOnce(String) -> Result<S, StoreError>) {
    let (Ok(what), Ok(url), Ok(time)) = (env::var(DO), env::var(URL), env::var(TRUE_TIME)) else { return };
    // Otherwise nothing would be shown.
    let off = now() - time.parse::<i64>().unwrap();
    assert!((off.abs() - OFF).abs() < 100, "the clock is {off} seconds off");
    let store = connect(url).await.unwrap();
    let lapsed = || Claim::new(Duration::ZERO, MINUTE);
    match &*what {
        "claims" => {
            assert!(matches!(store.claim(&key("runs"), &claim()).await.unwrap(), Claimed::Granted(_)));
            store.claim(&key("lapsed"), &lapsed()).await.unwrap();
            settled(&store, &key("settled")).await;
        }
        "finds" => {
            finds(&store).await;
            let taken = store.claim(&key("lapsed"), &lapsed()).await.unwrap();
            assert!(matches!(taken, Claimed::Granted(granted) if granted.takeover), "{taken:?}");
        }
        other => panic!("{other}"),
    }
}

/// What one of them, ahead or behind, has claimed and settled is so for one that is off the other way, and for this
/// one: it is neither over nor there for longer, and what has lapsed has.
pub(crate) async fn clocks_of_applications_do_not_count<S: StoreAdmin>(stores: [S; 2], url: &str, child: &str) {
    for (store, off) in stores.iter().zip([-OFF, OFF]) {
        run(child, url, off, "claims");
        finds(store).await;
        run(child, url, -off, "finds");
        for name in ["runs", "lapsed", "settled"] {
            let record = store.inspect(&key(name)).await.unwrap().unwrap();
            let created = i64::try_from(record.created.duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
            assert!((created - now()).abs() < 100 && record.expires_in <= MINUTE, "{record:?}");
            store.forget(&key(name)).await.unwrap();
        }
    }
}

async fn finds(store: &impl StoreAdmin) {
    let running = store.claim(&key("runs"), &claim()).await.unwrap();
    assert!(matches!(running, Claimed::Running { left, .. } if left <= MINUTE && left > Duration::ZERO), "{running:?}");
    replays(store, &key("settled")).await;
}

fn run(child: &str, url: &str, off: i64, what: &str) {
    let library = ["x86_64", "aarch64"]
        .map(|machine| format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1"))
        .into_iter()
        .find(|path| Path::new(path).is_file());
    let library = library.expect("`libfaketime` is needed, from Debian's package; scripts/test installs it");
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", child, "--nocapture"]).envs([(DO, what), (URL, url), (TRUE_TIME, &now().to_string())]);
    command.env("LD_PRELOAD", library).env("FAKETIME", format!("{off:+}s")).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{what}, {off} seconds off: {said}");
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}
