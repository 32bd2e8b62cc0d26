//! A client that leaves changes nothing.

use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::mpsc;
use tower_idempotency::{WhileRunning, store::State};

use crate::{
    clients::client::{Client, Way, ask},
    clients::server::{Feed, Site, within},
    common::Seen,
};

#[tokio::test]
async fn before_or_within_its_body_nothing_has_happened() {
    for way in Way::ALL {
        for halves in [0, 1] {
            let site = Site::new(|layer| layer).await;
            let mut client = Client::new(way, &site).await;
            let (sender, body) = mpsc::channel(1);
            let asked = client.ask("/echo", "k", Feed(body).boxed());
            site.came(1).await;
            for _ in 0..halves {
                sender.send(Bytes::from_static(b"half")).await.unwrap();
            }
            client.leave((asked, sender));
            site.in_hand(0).await;
            assert_eq!((site.runs(), site.record("/echo", "k").await), (0, None), "{way:?}, {halves}");
            let retry = ask(way, &site, "/echo", "k", "half and half").await;
            assert_eq!(retry, Seen::first(200, "run 1: half and half -"));
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_is_no_body() {
    for way in [Way::Http1, Way::Http2] {
        let site = Site::new(|layer| layer).await;
        let mut client = Client::new(way, &site).await;
        let (sender, body) = mpsc::channel(2);
        let asked = client.ask("/echo", "k", Feed(body).boxed());
        site.came(1).await;
        for frame in ["half", ""] {
            sender.send(frame.into()).await.unwrap();
        }
        within("an end", asked).await.unwrap_err();
        site.in_hand(0).await;
        assert_eq!((site.runs(), site.record("/echo", "k").await), (0, None), "{way:?}");
    }
}

#[tokio::test]
async fn during_the_handler_its_work_goes_on() {
    for way in Way::ALL {
        let site = Site::new(|layer| layer).await;
        let mut client = Client::new(way, &site).await;
        let asked = client.ask("/gated", "k", "body");
        site.ran(1).await;
        client.leave(asked);
        site.in_hand(0).await;
        assert_eq!(site.background_tasks.count(), 1, "{way:?}");
        let early = ask(way, &site, "/gated", "k", "body").await;
        assert_eq!((early.status.as_u16(), early.problem().as_str()), (409, "request-in-progress"));
        site.gate.add_permits(1);
        within("the background task's end", site.background_tasks.wait()).await;
        let retry = ask(way, &site, "/gated", "k", "body").await;
        assert_eq!((retry, site.runs(), site.were_dropped()), (Seen::replay(200, "run 1, attempt 1"), 1, 0), "{way:?}");
    }
}

#[tokio::test]
async fn one_stream_that_is_reset_leaves_the_others_alone() {
    let site = Site::new(|layer| layer).await;
    let mut client = Client::new(Way::Http2, &site).await;
    let (one, other) = (client.ask("/gated", "one", "body"), client.ask("/gated", "other", "body"));
    site.ran(2).await;
    drop(one);
    site.in_hand(1).await;
    assert_eq!(site.background_tasks.count(), 1);
    site.gate.add_permits(2);
    assert_eq!(within("the other's answer", other).await.unwrap().status(), 200);
    within("the background task's end", site.background_tasks.wait()).await;
    assert_eq!(site.record("/gated", "one").await, Some((State::Settled, true)));
}

#[tokio::test]
async fn attached_work_is_dropped_and_its_claim_lapses() {
    for way in Way::ALL {
        let site = Site::new(|layer| layer.cancel_on_disconnect().lease(Duration::from_millis(300))).await;
        let mut client = Client::new(way, &site).await;
        let asked = client.ask("/gated", "k", "body");
        site.ran(1).await;
        client.leave(asked);
        site.dropped(1).await;
        assert_eq!(
            (site.background_tasks.count(), site.record("/gated", "k").await),
            (0, Some((State::Running, false)))
        );
        site.gate.add_permits(1);
        let retry = within("the lease's end", async {
            loop {
                let retry = ask(way, &site, "/gated", "k", "body").await;
                if retry.status != 409 {
                    break retry;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert_eq!(retry.await, Seen::first(200, "run 2, attempt 2"), "{way:?}");
    }
}

#[tokio::test]
async fn waiting_for_another_it_leaves_nothing_behind() {
    for way in Way::ALL {
        let site = Site::new(|layer| layer.while_running(WhileRunning::Wait(Duration::from_secs(60)))).await;
        let mut runner = Client::new(Way::Http2, &site).await;
        let running = runner.ask("/gated", "k", "body");
        site.ran(1).await;
        let mut waiter = Client::new(way, &site).await;
        let waiting = waiter.ask("/gated", "k", "body");
        site.in_hand(2).await;
        waiter.leave(waiting);
        site.in_hand(1).await;
        assert_eq!(site.background_tasks.count(), 0, "{way:?}");
        let other = tokio::spawn({
            let site = site.clone();
            async move { ask(way, &site, "/gated", "k", "body").await }
        });
        site.in_hand(2).await;
        site.gate.add_permits(1);
        assert_eq!(within("the first answer", running).await.unwrap().status(), 200);
        assert_eq!(other.await.unwrap(), Seen::replay(200, "run 1, attempt 1"), "who stays gets it");
        assert_eq!((site.runs(), site.background_tasks.count()), (1, 0));
    }
}
