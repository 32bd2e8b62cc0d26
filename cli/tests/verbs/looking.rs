//! `inspect`, `list` and `stats`.

use std::{collections::BTreeSet, fs, sync::Arc};

use serde_json::Value;
use tower_idempotency::{
    Secret,
    store::{Claim, Claimed, RecordKey, SealedStore, SealingKeys, Settlement, Store, TraceContext},
};

use crate::{
    folder::Folder,
    stand::{HOUR, Stand, key, named},
};

/// The names in a record, which stay.
const SHAPE: [&str; 20] = [
    "answer",
    "at_most_once",
    "attempt",
    "claimant",
    "created",
    "expires_in_ms",
    "id",
    "key",
    "lapsed_ms",
    "lease_left_ms",
    "lease_ms",
    "log_id",
    "note",
    "route",
    "scope",
    "settled",
    "state",
    "takeover",
    "token",
    "trace_id",
];

#[test]
fn the_readme_shows_the_shape() {
    let readme = include_str!("../../README.md");
    let shown = readme.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let shown: Value = serde_json::from_str(shown).unwrap();
    assert_eq!(shown.as_object().unwrap().keys().collect::<Vec<_>>(), SHAPE);
}

pub(crate) async fn inspecting(stand: &Stand) {
    let mut claim = Claim::new(HOUR, HOUR);
    claim.note = "the request".into();
    claim.trace = Some(TraceContext::new([7; 16], [8; 8], 1));
    stand.claim(&key("7f0c"), claim).await;
    let record = stand.json(&named("inspect", "7f0c", &[]));
    let shape: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(shape, SHAPE);
    assert_eq!((&record["state"], &record["attempt"], &record["answer"]), (&"running".into(), &1.into(), &Value::Null));
    assert_eq!((&record["note"]["bytes"], &record["note"]["sealed_with"]), (&11.into(), &Value::Null));
    assert_eq!(record["trace_id"], "07".repeat(16));
    let left = record["lease_left_ms"].as_u64().unwrap();
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");

    // By its id, and by the key alone.
    let id = record["id"].as_str().unwrap();
    assert_eq!(stand.json(&["inspect", "--id", id])["key"], "7f0c");
    assert_eq!(stand.json(&["inspect", "7f0c"])["route"], "/orders/{id}");

    let told = stand.tool(&named("inspect", "7f0c", &[]));
    assert!(told.output.contains("running: its lease of 1 h has 59 min") && told.output.contains("UTC"), "{told:?}");
    assert!(!told.output.contains('\u{1b}'), "no colours without a terminal: {told:?}");

    // One key on two routes is named more closely.
    stand.run(&RecordKey::new("/refunds", None, "7f0c").unwrap()).await;
    let several = stand.tool(&["inspect", "7f0c"]);
    assert!(several.code == 2 && several.error.contains("route /refunds, scope none"), "{several:?}");

    for missing in [named("inspect", "none", &[]), vec!["inspect", "none"]] {
        let none = stand.tool(&missing);
        assert_eq!((none.code, &*none.output), (3, ""), "{none:?}");
    }
    let none = stand.tool(&named("inspect", "none", &["--json"]));
    let error: Value = serde_json::from_str(&none.error).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
}

pub(crate) async fn hashed_keys(stand: &Stand) {
    stand.settle(&key("first"), "kept").await;
    stand.settle(&key("second"), "kept").await;
    assert_eq!(stand.json(&["inspect", "--log-id", &key("second").log_id()])["key"], "second");

    // With the application's secret, logs have an HMAC.
    let secret = "a secret of at least thirty-two bytes";
    let folder = Folder::new();
    let file = folder.path().join("secret");
    fs::write(&file, format!("{secret}\n")).unwrap();
    let id = key("first").log_id_with(&Secret::new(secret).unwrap());
    let file = file.display().to_string();
    assert_eq!(stand.json(&["inspect", "--log-id", &id, "--secret-file", &file])["key"], "first");
    assert_eq!(stand.tool(&["inspect", "--log-id", &id]).code, 3);
}

pub(crate) async fn sealed_answers_stay_sealed(stand: &Stand) {
    let keys = SealingKeys::new([7; 32]).unwrap();
    let sealed = SealedStore::new(Arc::clone(&stand.store), keys.clone());
    let mut claim = Claim::new(HOUR, HOUR);
    claim.note = "the request".into();
    assert!(matches!(sealed.claim(&key("1"), &claim).await.unwrap(), Claimed::Granted(_)));
    sealed.settle(&key("1"), &Settlement::new(claim.claimant, Some("paid".into()), HOUR)).await.unwrap();
    let record = stand.json(&named("inspect", "1", &[]));
    for part in ["answer", "note"] {
        assert_eq!(record[part]["sealed_with"], keys.id().to_string());
    }
    let told = stand.tool(&named("inspect", "1", &[])).output;
    assert!(told.contains(&format!("53 bytes, sealed with the key {}", keys.id())), "{told}");

    // An answer that is not sealed would be refused by the application.
    let mut claim = Claim::new(std::time::Duration::from_millis(1), HOUR);
    claim.note = "the request".into();
    assert!(matches!(sealed.claim(&key("2"), &claim).await.unwrap(), Claimed::Granted(_)));
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let refused = stand.tool(&named("settle", "2", &["--response", "201", "--yes"]));
    assert!(refused.code == 4 && refused.error.contains("sealed"), "{refused:?}");
    assert_eq!(stand.json(&named("settle", "2", &["--tombstone", "--yes"]))["record"]["state"], "settled");
}

pub(crate) async fn listing(stand: &Stand) {
    stand.run(&key("running")).await;
    stand.abandon(&key("abandoned")).await;
    stand.settle(&key("settled"), "kept").await;
    stand.settle(&RecordKey::new("/refunds", None, "refund").unwrap(), "kept").await;
    let keys = |arguments: &[&str]| {
        let list = stand.json(&[&["list"], arguments].concat());
        let records = list["records"].as_array().unwrap().clone();
        records.iter().map(|record| record["key"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let set = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(keys(&["--abandoned"]), set(&["abandoned"]));
    assert_eq!(keys(&["--running"]), set(&["running"]));
    assert_eq!(keys(&["--settled"]), set(&["settled", "refund"]));
    assert_eq!(keys(&[]), set(&["abandoned", "running", "settled", "refund"]));
    assert_eq!(keys(&["--route", "/refunds"]), set(&["refund"]));
    assert_eq!(keys(&["--settled", "--scope", "ann"]), set(&["settled"]));
    assert_eq!(keys(&["--abandoned", "--lapsed-for", "1h"]), set(&[]));
    assert_eq!(keys(&["--abandoned", "--lapsed-for", "1ms"]), set(&["abandoned"]));

    let told = stand.tool(&["list"]).output;
    let lines: Vec<_> = told.lines().collect();
    assert!(lines[0].starts_with("STATE") && lines[0].ends_with("EXPIRES IN"), "{told}");
    let column = lines[0].find("KEY").unwrap();
    let places = lines[1..5].iter().filter(|line| line.get(column..).is_some_and(|rest| !rest.starts_with(' ')));
    assert_eq!((places.count(), lines[5]), (4, "4 records"), "{told}");
}

pub(crate) async fn paging(stand: &Stand) {
    let all: BTreeSet<_> = (0..25).map(|number| format!("order-{number}")).collect();
    for name in &all {
        stand.settle(&key(name), "kept").await;
    }
    for filters in [&["--settled"][..], &["--settled", "--route", "/orders/{id}"]] {
        let (mut seen, mut after, mut pages) = (BTreeSet::new(), None::<String>, 0);
        loop {
            let mut arguments = [&["list", "--limit", "10"], filters].concat();
            if let Some(after) = &after {
                arguments.extend(["--after", after]);
            }
            let page = stand.json(&arguments);
            let records = page["records"].as_array().unwrap();
            seen.extend(records.iter().map(|record| record["key"].as_str().unwrap().to_owned()));
            (after, pages) = (page["next"].as_str().map(ToOwned::to_owned), pages + 1);
            if after.is_none() {
                break;
            }
        }
        assert!(seen == all && pages <= 26, "{pages} pages: {seen:?}");
    }
    assert_eq!(stand.tool(&["list", "--after", "zz"]).code, 2);
}

pub(crate) async fn counting(stand: &Stand) {
    stand.run(&key("1")).await;
    stand.abandon(&key("2")).await;
    stand.settle(&key("3"), "kept").await;
    stand.settle(&key("4"), "kept").await;
    let stats = stand.json(&["stats"]);
    let expected = serde_json::json!({ "issued": 0, "running": 1, "abandoned": 1, "settled": 2, "released": 0 });
    assert_eq!(stats, expected);
    let told = stand.tool(&["stats"]).output;
    assert!(told.contains("abandoned  1\n") && !told.contains("secret"), "{told}");
}
