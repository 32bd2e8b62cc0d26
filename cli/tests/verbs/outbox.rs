//! `outbox list`, `retry` and `discard`.

use std::time::Duration;

use tower_idempotency::sql::{
    SqlDatabase, SqlStore,
    outbox::{Message, Outbox, Relay, StagedMessage},
};

use crate::stand::Stand;

async fn outbox<D: SqlDatabase>(stand: &Stand, store: &SqlStore<D>, name: &str) -> Outbox<D> {
    assert_eq!(stand.tool(&["outbox", "list", "--outbox-table", name]).code, 1, "there is no table yet");
    let outbox = store.outbox().table(name).unwrap();
    outbox.migrate().await.unwrap();
    outbox
}

async fn stage<D: SqlDatabase>(store: &SqlStore<D>, outbox: &Outbox<D>, message: Message) -> String {
    let mut connection = store.pool().acquire().await.unwrap();
    outbox.stage(&mut connection, &message).await.unwrap();
    message.id
}

pub(crate) async fn listing<D: SqlDatabase>(stand: &Stand, store: &SqlStore<D>) {
    let outbox = outbox(stand, store, "listed").await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(stage(store, &outbox, Message::new("order.paid", "content").key(format!("order-{number}"))).await);
    }
    let list = |arguments: &[&str]| stand.json(&[&["outbox", "list", "--outbox-table", "listed"], arguments].concat());
    let first = list(&["--limit", "3"]);
    let message = &first["messages"][0];
    let shape: Vec<_> = message.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(shape, ["bytes", "id", "key", "position", "staged", "topic", "tries"]);
    assert_eq!((&message["topic"], &message["tries"], &message["bytes"]), (&"order.paid".into(), &0.into(), &7.into()));
    let stats = &first["stats"];
    assert_eq!((&stats["unsent"], &stats["failing"], stats["oldest_ms"].is_u64()), (&5.into(), &0.into(), true));
    let next = first["next"].to_string();
    let second = list(&["--limit", "3", "--after", &next]);
    assert_eq!(second["next"], serde_json::Value::Null);
    let both = first["messages"].as_array().unwrap().iter().chain(second["messages"].as_array().unwrap());
    let listed: Vec<_> = both.map(|message| message["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(listed, ids);
    assert_eq!(list(&["--older-than", "1h"])["messages"], serde_json::json!([]));
    let told = stand.tool(&["outbox", "list", "--outbox-table", "listed"]).output;
    assert!(
        told.contains("order-4") && told.contains("5 messages unsent, 0 of them failing") && !told.contains("content")
    );
}

pub(crate) async fn retrying_and_discarding<D: SqlDatabase>(stand: &Stand, store: &SqlStore<D>) {
    let outbox = outbox(stand, store, "retried").await;
    let failing = stage(store, &outbox, Message::new("order.paid", "1").key("a")).await;
    let relay = Relay::new(outbox.clone(), |_: StagedMessage| async { Err::<(), _>("the broker refuses") })
        .backoff(Duration::from_secs(600), Duration::from_secs(600));
    assert_eq!(relay.run_once().await.unwrap().failed, 1);
    assert_eq!(relay.run_once().await.unwrap().failed, 0, "it is put off");
    let table = ["--outbox-table", "retried"];
    let retried = stand.json(&[&["outbox", "retry", &failing], &table[..]].concat());
    assert_eq!((&retried["retried"], &retried["id"]), (&true.into(), &failing.clone().into()));
    assert_eq!(relay.run_once().await.unwrap().failed, 1, "it is due now");

    let asked = stand.tool(&[&["outbox", "discard", &failing], &table[..]].concat());
    assert!(asked.code == 4 && asked.error.contains("never sent"), "{asked:?}");
    let discarded = stand.json(&[&["outbox", "discard", &failing, "--yes"], &table[..]].concat());
    assert_eq!(discarded["discarded"], true);
    for verb in ["retry", "discard"] {
        let gone = stand.tool(&[&["outbox", verb, &failing, "--yes"], &table[..]].concat());
        assert_eq!(gone.code, 3, "{gone:?}");
    }
    assert_eq!(outbox.stats().await.unwrap().unsent, 0);
}
