//! No event and no debug output shows the text of a key or a scope.

use std::{
    convert::Infallible,
    fmt::{Debug, Write},
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
};

use crate::faulty_bench::{Ask, Bench, End, LEASE, ask, record_key, secs};
use http::{Request, Response};
use tokio::time::sleep;
use tower::{Layer, Service, service_fn};
use tower_idempotency::{
    BackgroundTasks, Event, IdempotencyLayer, MemoryStore, Observer, Operation, Secret, scope,
    service::RequestBody,
    store::{StoreErrorKind, StoreVerb},
};
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Everything that is said: by `tracing`, and by `Debug`.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<String>>);

impl Said {
    fn say(&self, what: &dyn Debug) {
        write!(self.0.lock().unwrap(), "{what:?}\n{what:#?}\n").unwrap();
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Said {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_idempotency")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Observer for Said {
    fn on_event(&self, event: &Event<'_>) {
        self.say(event);
    }
}

const KEY: &str = "order-4711";
const SCOPE: &str = "tenant-0815";

fn assert_no_secret(said: &Said) {
    let text = said.text();
    for secret in [KEY, SCOPE, "4711", "0815"] {
        assert!(!text.contains(secret), "{secret} in: {text}");
    }
}

async fn send(bench: &Bench, asks: impl IntoIterator<Item = Ask>) {
    for ask in asks {
        // Those that panic are reported as well.
        let _ = bench.send(ask).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_event_shows_a_key() {
    let said = Said::default();
    let _guard = tracing::subscriber::set_default(said.clone());
    let adjust = |layer: IdempotencyLayer| {
        layer
            .scope(scope::from_fn(|_| Some(SCOPE.to_owned())))
            .observer(said.clone())
            .background_tasks(BackgroundTasks::new().limit(9))
    };
    let bench = Bench::with(adjust);
    for end in [End::Answers(500), End::Fails, End::Panics, End::Answers(206)] {
        send(&bench, [ask(KEY).ends(end), ask(KEY).body("two")]).await;
    }
    send(&bench, [ask("order-4711,x"), ask("\"order-4711"), ask(&KEY.repeat(30))]).await;
    for verb in [StoreVerb::Claim, StoreVerb::Renew, StoreVerb::Settle, StoreVerb::Release] {
        bench.faults.on(verb).times(3).fail(StoreErrorKind::Unavailable);
    }
    send(&bench, (0..4).map(|try_| ask(&format!("{KEY}-{try_}")).takes(LEASE))).await;
    let client = bench.send(ask(&format!("{KEY}-left")).takes(secs(3)));
    sleep(secs(1)).await;
    client.abort();
    sleep(LEASE).await;
    for word in ["claimed", "released", "settled", "refused", "the store failed", "the client left", "key="] {
        assert!(said.text().contains(word), "nobody said: {word}");
    }
    assert_no_secret(&said);
}

#[tokio::test(start_paused = true)]
async fn with_a_secret_ids_in_logs_cannot_be_guessed() {
    let said = Said::default();
    let _guard = tracing::subscriber::set_default(said.clone());
    let secret = Secret::new([7; 32]).unwrap();
    let bench = Bench::with(|layer| layer.unscoped().secret(secret.clone()));
    send(&bench, [ask(KEY), ask(KEY), ask(KEY).body("two")]).await;
    let key = record_key(KEY);
    assert!(said.text().contains(&key.log_id_with(&secret)), "{}", said.text());
    assert!(!said.text().contains(&key.log_id()), "{}", said.text());
}

#[tokio::test(start_paused = true)]
async fn no_debug_output_shows_a_key() {
    let said = Said::default();
    let layer = IdempotencyLayer::new(MemoryStore::new()).scope(scope::header("X-User"));
    let inner = {
        let said = said.clone();
        service_fn(move |request: Request<RequestBody<String>>| {
            let operation: &Operation = request.extensions().get().unwrap();
            said.say(operation);
            said.say(operation.record_key());
            async {
                sleep(secs(1)).await;
                Ok::<_, Infallible>(Response::new(String::new()))
            }
        })
    };
    let mut service = layer.layer(inner);
    let request = Request::post("/").header("Idempotency-Key", KEY).header("X-User", SCOPE);
    let mut answer = Box::pin(service.call(request.body("one".to_owned()).unwrap()));
    assert!(is_pending(&mut answer).await);
    said.say(&answer);
    said.say(&layer);
    said.say(&answer.await.unwrap());
    assert!(said.text().contains("Operation"));
    assert_no_secret(&said);
}

/// Polls once; says whether there is more to wait for.
async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending())).await
}
