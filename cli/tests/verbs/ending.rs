//! `settle`, `release` and `forget`.

use std::fs;

use tower_idempotency::store::{Claim, Claimed, State};

use crate::{
    folder::Folder,
    stand::{HOUR, Stand, key, named},
};

pub(crate) async fn settling(stand: &Stand) {
    let claim = stand.abandon(&key("1")).await;
    let folder = Folder::new();
    let body = folder.path().join("body");
    fs::write(&body, "payment 7").unwrap();
    let body = body.display().to_string();
    let answer = ["--response", "201", "--header", "content-type: text/plain", "--body-file", &body, "--keep", "2h"];

    // Without a terminal, nobody can agree.
    let asked = stand.tool(&named("settle", "1", &answer));
    assert!(
        asked.code == 4 && asked.error.contains("would settle the abandoned record 1") && asked.error.contains("--yes")
    );
    assert_eq!(stand.store.inspect(&key("1")).await.unwrap().unwrap().state, State::Running);

    let done = stand.json(&[&*named("settle", "1", &answer), &["--yes"]].concat());
    assert_eq!((&done["settled"], &done["record"]["state"]), (&true.into(), &"settled".into()));
    let record = stand.store.inspect(&key("1")).await.unwrap().unwrap();
    assert_ne!(record.claimant, claim.claimant, "the runner that comes back has lost its claim");
    assert!((5_400..=7_200).contains(&record.expires_in.as_secs()));
    assert!(String::from_utf8_lossy(record.payload.as_deref().unwrap()).contains("payment 7"));
    assert!(matches!(stand.store.claim(&key("1"), &Claim::new(HOUR, HOUR)).await.unwrap(), Claimed::Settled(..)));

    let again = stand.tool(&named("settle", "1", &["--tombstone", "--yes"]));
    assert!(again.code == 4 && again.error.contains("settled"), "{again:?}");
    for (number, outcome) in [("2", &["--done"][..]), ("3", &["--failed"]), ("4", &["--value", "{\"a\": 1.5}"])] {
        stand.abandon(&key(number)).await;
        let done = stand.json(&named("settle", number, &[outcome, &["--yes"]].concat()));
        assert!(done["record"]["answer"]["bytes"].as_u64().unwrap() > 0);
    }
    stand.abandon(&key("5")).await;
    let done = stand.json(&named("settle", "5", &["--tombstone", "--yes"]));
    assert_eq!(done["record"]["answer"], serde_json::Value::Null);
    assert_eq!(stand.tool(&named("settle", "5", &["--value", "{", "--yes"])).code, 2);
    assert_eq!(stand.tool(&named("settle", "6", &["--tombstone", "--yes"])).code, 3);
}

pub(crate) async fn releasing(stand: &Stand) {
    stand.abandon(&key("1")).await;
    assert_eq!(stand.tool(&named("release", "1", &[])).code, 4);
    let done = stand.json(&named("release", "1", &["--yes"]));
    assert_eq!((&done["released"], &done["record"]["state"]), (&true.into(), &"released".into()));
    stand.run(&key("1")).await;
    assert_eq!(stand.store.inspect(&key("1")).await.unwrap().unwrap().attempt, 2);

    stand.abandon(&key("2")).await;
    let done = stand.json(&named("release", "2", &["--undo", "--yes"]));
    assert_eq!((&done["released"], &done["record"]), (&true.into(), &serde_json::Value::Null));
    assert!(stand.store.inspect(&key("2")).await.unwrap().is_none());
}

pub(crate) async fn forgetting(stand: &Stand) {
    stand.settle(&key("1"), "kept").await;
    let asked = stand.tool(&named("forget", "1", &[]));
    assert!(asked.code == 4 && asked.error.contains("would remove the settled record 1"), "{asked:?}");
    let done = stand.json(&named("forget", "1", &["--yes"]));
    assert_eq!((&done["forgotten"], &done["record"]["state"]), (&true.into(), &"settled".into()));
    assert!(stand.store.inspect(&key("1")).await.unwrap().is_none());
    assert_eq!(stand.tool(&named("forget", "1", &["--yes"])).code, 3);
}

pub(crate) async fn what_is_running_is_left_alone(stand: &Stand) {
    let claim = stand.run(&key("1")).await;
    for arguments in [&["settle", "--tombstone"][..], &["release"], &["forget"]] {
        let refused = stand.tool(&named(arguments[0], "1", &[&arguments[1..], &["--yes"]].concat()));
        assert!(refused.code == 4 && refused.error.contains("is running"), "{refused:?}");
    }
    assert_eq!(stand.store.inspect(&key("1")).await.unwrap().unwrap().claimant, claim.claimant);
    assert_eq!(stand.tool(&named("forget", "1", &["--yes", "--force"])).code, 0);
    assert!(stand.store.inspect(&key("1")).await.unwrap().is_none());
}
