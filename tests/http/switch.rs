//! A switch turns protection off and on while the service runs.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use tokio::time::{Duration, sleep};
use tower::ServiceExt;
use tower_idempotency::{
    Event, IdempotencyLayer, MemoryStore, OnDuplicate, Policy, Protection, Switch, Tokens, WhileRunning,
    store::{RecordKey, State, StoreAdmin},
};

use crate::common::{Counter, Seen, post as send, see};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn add(&self, event: &Event<'_>) {
        let text = match event {
            Event::Switched { protection, before, .. } => format!("{before:?} to {protection:?}"),
            Event::WouldRefuse { refusal, .. } => format!("would refuse: {}", refusal.name()),
            Event::WouldReplay { .. } => "would replay".into(),
            Event::Refused { refusal, .. } => format!("refused: {}", refusal.name()),
            Event::Replayed { .. } => "replayed".into(),
            Event::Settled { .. } => "settled".into(),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

struct Place {
    app: Router,
    switch: Switch,
    log: Log,
    store: MemoryStore,
}

impl Place {
    fn new(set: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        let (store, switch, log, runs) = (MemoryStore::new(), Switch::new(), Log::default(), Counter::default());
        let observed = log.clone();
        let layer = IdempotencyLayer::new(store.clone())
            .switch(switch.clone())
            .observer(move |event: &Event<'_>| observed.add(event));
        let handler = move |body: String| async move {
            if body == "slow" {
                sleep(Duration::from_secs(5)).await;
            }
            runs.next().to_string()
        };
        Self { app: Router::new().route("/run", post(handler)).layer(set(layer)), switch, log, store }
    }

    async fn ask(&self, key: &str, body: &str) -> Seen {
        see(self.app.clone().oneshot(send("/run", key, body)).await.unwrap()).await
    }

    async fn state(&self, key: &str) -> Option<State> {
        let key = RecordKey::new("/run", None, key).unwrap();
        self.store.inspect(&key).await.unwrap().map(|record| record.state)
    }
}

fn same(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer
}

#[tokio::test]
async fn while_it_is_off_everything_runs_and_nothing_is_written() {
    let place = Place::new(same);
    assert_eq!(place.ask("before", "").await, Seen::first(200, "1"));
    place.switch.set(Protection::Off);
    assert_eq!(place.ask("before", "").await, Seen::first(200, "2"));
    assert_eq!(place.ask("off", "").await, Seen::first(200, "3"));
    assert_eq!(place.state("off").await, None);
    // What was settled before is still there, and what ran meanwhile is not.
    place.switch.set(Protection::On);
    assert_eq!(place.ask("before", "").await, Seen::replay(200, "1"));
    assert_eq!(place.ask("off", "").await, Seen::first(200, "4"));
    assert_eq!(place.log.take(), ["settled", "On to Off", "Off to On", "replayed", "settled"]);
}

#[tokio::test(start_paused = true)]
async fn while_it_only_observes_it_says_what_it_would_do() {
    let place = Place::new(|layer| layer.while_running(WhileRunning::Wait(Duration::from_secs(60))));
    place.switch.set(Protection::ObserveOnly);
    assert_eq!(place.ask("a", "one").await, Seen::first(200, "1"));
    assert_eq!(place.state("a").await, Some(State::Settled));
    assert_eq!(place.log.take(), ["On to ObserveOnly", "settled"]);
    assert_eq!(place.ask("a", "one").await, Seen::first(200, "2"));
    assert_eq!(place.ask("a", "two").await, Seen::first(200, "3"));
    assert_eq!(place.log.take(), ["would replay", "would refuse: key-reused"]);

    for request in [Request::post("/run"), Request::post("/run").header("idempotency-key", "")] {
        let answer = place.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    }
    assert_eq!(place.log.take(), ["would refuse: key-missing", "would refuse: key-invalid"]);

    // It does not wait for the first one either.
    let (first, second) = tokio::join!(place.ask("slow", "slow"), async {
        sleep(Duration::from_secs(1)).await;
        let began = tokio::time::Instant::now();
        let seen = place.ask("slow", "slow").await;
        (seen, began.elapsed())
    });
    assert_eq!((first, second), (Seen::first(200, "6"), (Seen::first(200, "7"), Duration::from_secs(5))));
    assert_eq!(place.log.take(), ["would refuse: request-in-progress", "settled"]);
    // The kept answer is that of the first run.
    place.switch.set(Protection::On);
    assert_eq!(place.ask("a", "one").await, Seen::replay(200, "1"));
}

#[tokio::test]
async fn what_a_policy_would_do_is_said_in_its_words() {
    for (set, would) in [
        ((|layer| layer.policy(Policy::reject())) as fn(IdempotencyLayer) -> _, "would refuse: duplicate-request"),
        (|layer| layer.on_duplicate(OnDuplicate::PassThrough), "would replay"),
        (|layer| layer.response_limit(0), "would refuse: response-not-retained"),
    ] {
        let place = Place::new(set);
        place.switch.set(Protection::ObserveOnly);
        for _ in 0..2 {
            assert_eq!(place.ask("a", "").await.status, 200);
        }
        assert_eq!(place.log.take().last().map(String::as_str), Some(would));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_begun_ends_as_if_the_switch_were_on() {
    let place = Place::new(same);
    let (first, ()) = tokio::join!(place.ask("slow", "slow"), async {
        sleep(Duration::from_secs(1)).await;
        place.switch.set(Protection::Off);
    });
    assert_eq!(first, Seen::first(200, "1"));
    assert_eq!(place.state("slow").await, Some(State::Settled));
}

#[tokio::test]
async fn of_several_switches_the_one_that_protects_least_decides() {
    let route = Switch::new();
    let place = Place::new(|layer| layer.switch(route.clone()));
    let positions = [Protection::On, Protection::ObserveOnly, Protection::Off];
    for all in positions {
        for one in positions {
            place.switch.set(all);
            route.set(one);
            place.ask("a", "").await;
            place.ask("a", "").await;
            let replayed = place.log.take().contains(&"replayed".to_owned());
            assert_eq!(replayed, all == Protection::On && one == Protection::On, "{all:?} {one:?}");
        }
    }
}

#[tokio::test]
async fn tokens_are_not_asked_for_while_it_is_off() {
    let switch = Switch::new();
    let layer = Tokens::new(MemoryStore::new()).layer("order").switch(switch.clone());
    let app = Router::new().route("/run", post(async || "ran")).layer(layer);
    let ask = async || {
        let request = Request::post("/run").body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap().status()
    };
    assert!(ask().await.is_client_error());
    for protection in [Protection::ObserveOnly, Protection::Off] {
        switch.set(protection);
        assert_eq!(ask().await, StatusCode::OK);
    }
    switch.set(Protection::On);
    assert!(ask().await.is_client_error());
}

#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn the_log_names_a_route_that_is_not_protected_once_a_minute() {
    use crate::tracing_events::Heard;

    let place = Place::new(same);
    let (heard, _listening) = Heard::listen();
    let named = |heard: &Heard| {
        heard
            .take()
            .iter()
            .filter(|line| line.contains("a switch is not on") && line.contains("route=\"/run\""))
            .count()
    };
    assert_eq!(place.ask("a", "").await.status, 200);
    assert_eq!(named(&heard), 0);
    place.switch.set(Protection::Off);
    for (seconds, lines) in [(0, 1), (30, 0), (29, 0), (1, 1), (600, 1)] {
        sleep(Duration::from_secs(seconds)).await;
        for _ in 0..3 {
            place.ask("a", "").await;
        }
        assert_eq!(named(&heard), lines, "{seconds} s later");
    }
}
