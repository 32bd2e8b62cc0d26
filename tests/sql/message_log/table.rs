//! The table: writing, reading, removing.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::time::{sleep, timeout};
use tower_idempotency::{
    sql::message_log::{IncomingMessage, LoggedMessage, MessageFilter},
    store::StoreErrorKind,
};

use super::service::Service;
use crate::database::TestDatabase;

fn texts(messages: &[LoggedMessage]) -> Vec<&str> {
    messages.iter().map(|logged| std::str::from_utf8(&logged.message.body).unwrap()).collect()
}

pub(crate) async fn what_is_written_is_read<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let every_byte: Bytes = (0..=u8::MAX).collect();
    let mut message = IncomingMessage::new("pay", every_byte)
        .key("order-7")
        .request("POST", "/pay?a=1")
        .header("x-a", "1")
        .header("x-b", &b"\xff caf\xe9"[..]);
    service.log.write(&message).await.unwrap();
    let logged = service.log.get(&message.id).await.unwrap().unwrap();
    assert_eq!(logged.message, message);
    assert_eq!((logged.status, logged.answered), (None, None));
    // The clock is the database's, which is on this machine.
    assert!(logged.arrived.elapsed().unwrap_or_default() < Duration::from_secs(600), "{logged:?}");
    assert!(service.log.get("0").await.unwrap().is_none());

    // A message of a queue has neither method nor path, and may be empty.
    message = IncomingMessage::new("queue", "");
    service.log.write(&message).await.unwrap();
    assert_eq!(service.log.get(&message.id).await.unwrap().unwrap().message, message);

    let small = service.log.clone().body_limit(3);
    message = IncomingMessage::new("pay", "abcd");
    small.write(&message).await.unwrap();
    let cut = service.log.get(&message.id).await.unwrap().unwrap().message;
    assert_eq!((&cut.body[..], cut.is_cut), (&b"abc"[..], true));
}

/// A statement whose connection broke is sent again.
pub(crate) async fn an_id_is_taken_once<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let message = IncomingMessage::new("pay", "first");
    let mut again = message.clone();
    again.body = "second".into();
    for message in [&message, &again] {
        service.log.write(message).await.unwrap();
    }
    assert_eq!(service.message().await.message.body, "first");
}

pub(crate) async fn an_answer_is_noted_once<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let message = IncomingMessage::new("pay", "");
    service.log.write(&message).await.unwrap();
    assert!(service.log.answered(&message.id, 201).await.unwrap());
    assert!(!service.log.answered(&message.id, 500).await.unwrap());
    assert!(!service.log.answered("0", 201).await.unwrap());
    let logged = service.message().await;
    assert_eq!(logged.status, Some(201));
    assert!(logged.answered.unwrap() >= logged.arrived);
}

pub(crate) async fn found_by_key_route_and_time<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    for (route, key, text) in
        [("pay", Some("a"), "1"), ("refund", Some("a"), "2"), ("pay", Some("b"), "3"), ("pay", None, "4")]
    {
        let message = IncomingMessage::new(route, text);
        let message = key.into_iter().fold(message, IncomingMessage::key);
        service.log.write(&message).await.unwrap();
    }
    service.run("UPDATE idempotency_message_log SET arrived_ms = 1000 * seq").await;
    let second = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    let all = MessageFilter::new;
    for (filter, found) in [
        (all(), vec!["1", "2", "3", "4"]),
        (all().key("a"), vec!["1", "2"]),
        (all().key("c"), vec![]),
        (all().route("pay"), vec!["1", "3", "4"]),
        (all().key("a").route("refund"), vec!["2"]),
        (all().from(second(2)), vec!["2", "3", "4"]),
        (all().until(second(3)), vec!["1", "2"]),
        (all().from(second(2)).until(second(4)).route("pay"), vec!["3"]),
        (all().from(second(2)).key("a"), vec!["2"]),
    ] {
        assert_eq!(texts(&service.log.list(&filter, 10).await.unwrap()), found, "{filter:?}");
    }
}

pub(crate) async fn page_by_page<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    for n in 0..7 {
        service.log.write(&IncomingMessage::new("pay", n.to_string()).key("a")).await.unwrap();
    }
    // Several at one moment.
    service.run("UPDATE idempotency_message_log SET arrived_ms = 1000 * (seq / 3)").await;
    for filter in [MessageFilter::new(), MessageFilter::new().key("a")] {
        let (mut next, mut seen) = (filter, Vec::new());
        loop {
            let page = service.log.list(&next, 2).await.unwrap();
            assert!(page.len() <= 2);
            seen.extend(texts(&page).into_iter().map(str::to_owned));
            let Some(last) = page.last() else { break };
            next = next.after(last);
        }
        assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"]);
    }
}

pub(crate) async fn what_is_old_is_removed<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    for n in 0..130 {
        service.log.write(&IncomingMessage::new("pay", n.to_string())).await.unwrap();
    }
    let log = service.log.clone().retention(Duration::from_secs(3600));
    assert_eq!(log.purge(1000).await.unwrap(), 0);
    service.run("UPDATE idempotency_message_log SET arrived_ms = arrived_ms - 3600001 WHERE seq <= 120").await;
    assert_eq!(log.purge(60).await.unwrap(), 60);
    assert_eq!(log.purge(1000).await.unwrap(), 60);
    assert_eq!(service.messages().await.len(), 10);
}

/// It begins with the first message that is written.
pub(crate) async fn what_is_old_goes_by_itself<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    for n in 0..110 {
        service.log.write(&IncomingMessage::new("pay", n.to_string())).await.unwrap();
    }
    service.run("UPDATE idempotency_message_log SET arrived_ms = arrived_ms - 3600001").await;
    let log = service.log.clone().retention(Duration::from_secs(3600)).purge_every(Duration::from_millis(100));
    log.write(&IncomingMessage::new("pay", "new")).await.unwrap();
    let gone = async {
        while service.messages().await.len() > 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), gone).await.expect("nothing is removed");
    assert_eq!(texts(&service.messages().await), ["new"]);
}

pub(crate) async fn in_a_table_of_another_name<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let log = service.log.clone().table("order").unwrap();
    let message = IncomingMessage::new("pay", "");
    assert_eq!(log.write(&message).await.unwrap_err().kind(), StoreErrorKind::Misconfigured);
    for _ in 0..2 {
        log.migrate().await.unwrap();
    }
    log.write(&message).await.unwrap();
    assert!(log.get(&message.id).await.unwrap().is_some());
    assert!(service.messages().await.is_empty());
    assert!(service.log.clone().table("no name").is_err());
}
