//! A layer on a store with scripted faults, around a handler that does as its request says.
//!
//! Time is Tokio's paused time. What a client receives, and what an observer receives, are lines of text, so that tests
//! are tables of what should be seen.
#![allow(dead_code, unreachable_pub, unused_imports)] // each test takes what it needs

mod client;
mod log;
mod wire;

use std::time::Duration;

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore,
    store::{Record, RecordKey, State, Store, StoreAdmin, StoreErrorKind},
    testing::{Fault, Faults, FaultyStore},
};

pub use self::{
    client::{Ask, End, Handler, Told, ask},
    log::Log,
    wire::Wire,
};

pub const LEASE: Duration = secs(30);
pub const STORE_TIMEOUT: Duration = secs(5);

pub const ERRORS: [StoreErrorKind; 5] = [
    StoreErrorKind::Unavailable,
    StoreErrorKind::Timeout,
    StoreErrorKind::Misconfigured,
    StoreErrorKind::Corrupt,
    StoreErrorKind::Other,
];

pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What befalls a call.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Fails(StoreErrorKind),
    Hangs,
    Late(Duration),
}

impl Way {
    pub fn befall(self, fault: Fault<'_>) {
        match self {
            Self::Fails(kind) => fault.fail(kind),
            Self::Hangs => fault.hang(),
            Self::Late(by) => fault.delay(by),
        }
    }

    /// How long a caller waits for it that waits for the store timeout at most.
    pub fn held(self) -> Duration {
        match self {
            Self::Fails(_) => Duration::ZERO,
            Self::Hangs => STORE_TIMEOUT,
            Self::Late(by) => by.min(STORE_TIMEOUT),
        }
    }

    pub fn is_permanent(self) -> bool {
        use StoreErrorKind::{Corrupt, Misconfigured};
        matches!(self, Self::Fails(Misconfigured | Corrupt))
    }
}

/// Every way to be away, each before the effect and after it.
pub fn ways() -> impl Iterator<Item = (Way, bool)> {
    let errors = ERRORS.into_iter().map(Way::Fails);
    let ways = errors.chain([Way::Hangs, Way::Late(STORE_TIMEOUT * 2)]);
    ways.flat_map(|way| [(way, false), (way, true)])
}

pub fn when(fault: Fault<'_>, after_effect: bool) -> Fault<'_> {
    if after_effect { fault.after_effect() } else { fault }
}

pub fn record_key(key: &str) -> RecordKey {
    RecordKey::new("orders", None, key).expect("a valid key")
}

pub struct Bench {
    pub store: FaultyStore<MemoryStore>,
    pub faults: Faults,
    pub handler: Handler,
    pub log: Log,
    begin: Instant,
    layer: IdempotencyLayer,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|layer| layer)
    }

    pub fn with(adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        Self::behind(|store| store, adjust)
    }

    /// With something between the layer and the store.
    pub fn behind<S: Store>(
        between: impl FnOnce(FaultyStore<MemoryStore>) -> S,
        adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
    ) -> Self {
        let store = FaultyStore::new(MemoryStore::new());
        let (faults, log) = (store.faults(), Log::default());
        let layer = IdempotencyLayer::new(between(store.clone()))
            .retry_after(secs(5))
            .route("orders")
            .lease(LEASE)
            .store_timeout(STORE_TIMEOUT)
            .observer(log.clone());
        Self { store, faults, handler: Handler::default(), log, begin: Instant::now(), layer: adjust(layer) }
    }

    /// Sends a request in a task of its own.
    pub fn send(&self, ask: Ask) -> JoinHandle<Told> {
        tokio::spawn(client::send(self.layer.clone(), self.handler.clone(), self.begin, ask))
    }

    pub async fn told(&self, ask: Ask) -> Told {
        self.send(ask).await.expect("no panic")
    }

    /// Sends a request, and returns what its client received as a line.
    pub async fn line(&self, ask: Ask) -> String {
        self.told(ask).await.line
    }

    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Returns which run learned, after how long, that its claim is lost or may be.
    pub fn lost(&self) -> Vec<(usize, Duration)> {
        self.handler.lost(self.begin)
    }

    /// Lets time pass until this long after the beginning.
    pub async fn until(&self, time: Duration) {
        sleep_until(self.begin + time).await;
    }

    pub async fn record(&self, key: &str) -> Option<Record> {
        self.store.inspect(&record_key(key)).await.expect("an operator's verbs do not fail")
    }

    pub async fn state(&self, key: &str) -> Option<State> {
        self.record(key).await.map(|record| record.state)
    }

    /// Whether the next request with this key is run.
    pub async fn is_free(&self, key: &str) -> bool {
        matches!(self.state(key).await, None | Some(State::Released))
    }
}
