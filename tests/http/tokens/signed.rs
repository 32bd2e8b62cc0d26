//! What holds for signed tokens: nothing is stored until one is spent, and nothing is forgotten too early.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::http::HeaderName;
use tower_idempotency::{
    MemoryStore, OnDuplicate, TokenLayer, Tokens,
    store::{Filter, Record, State, StoreAdmin, StoreErrorKind, StoreVerb},
    testing::{FaultyStore, ManualClock},
    token::SigningKeys,
};

use crate::{
    common::{DAY, second_of_day},
    tokens::fixture::{Shop, submission},
};

const SKEW: Duration = Duration::from_secs(30);
const LIFE: Duration = Duration::from_secs(300);

/// One process: its own clock, the store of all.
fn process(store: &Arc<MemoryStore>, keys: SigningKeys, offset: i64, clock: &ManualClock) -> Tokens {
    let clock = clock.clone();
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.now().saturating_add_signed(offset));
    Tokens::signed(store.clone(), keys).lifetime(LIFE).clock_skew(SKEW).clock(now)
}

fn keys() -> SigningKeys {
    SigningKeys::new([1; 32]).unwrap()
}

struct Fixture {
    clock: ManualClock,
    store: Arc<MemoryStore>,
}

impl Fixture {
    fn new() -> Self {
        let clock = ManualClock::new();
        Self { store: Arc::new(MemoryStore::builder().clock(clock.clone()).build()), clock }
    }

    fn shop(&self, offset: i64, adjust: impl FnOnce(TokenLayer) -> TokenLayer) -> Shop {
        Shop::new(process(&self.store, keys(), offset, &self.clock), adjust)
    }

    async fn records(&self) -> Vec<Record> {
        self.store.list(Filter::All, None, 10).await.unwrap().entries.into_iter().map(|entry| entry.record).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_until_it_is_spent() {
    let fixture = Fixture::new();
    let shop = fixture.shop(0, |layer| layer);
    let mut token = String::new();
    for _ in 0..100 {
        token = shop.token(Some("ann")).await;
    }
    // Nor is it by callers who try something that is not a token, or is not theirs.
    shop.submit(&token, Some("bob"), "").await;
    shop.submit(&"A".repeat(108), Some("ann"), "").await;
    assert!(fixture.records().await.is_empty());
    assert_eq!(shop.submit(&token, Some("ann"), "").await.status, 201);
    let records = fixture.records().await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].state, State::Settled);
}

/// Whatever the policy says: shorter, it could be spent again.
#[tokio::test(start_paused = true)]
async fn it_is_remembered_as_long_as_anybody_could_accept_it() {
    for retention in [Duration::from_millis(1), Duration::from_secs(1), Duration::from_secs(24 * 60 * 60)] {
        let fixture = Fixture::new();
        let shop = fixture.shop(0, |layer| layer.retention(retention));
        let token = shop.token(None).await;
        fixture.clock.advance(Duration::from_secs(100));
        assert_eq!(shop.submit(&token, None, "").await.status, 201);
        assert_eq!(fixture.records().await[0].expires_in, Duration::from_secs(200) + SKEW);
        fixture.clock.advance(Duration::from_millis(199_999));
        assert_eq!(shop.submit(&token, None, "").await.problem(), "token-used");
        fixture.clock.advance(Duration::from_millis(1));
        assert_eq!(shop.submit(&token, None, "").await.problem(), "token-invalid");
        fixture.clock.advance(SKEW);
        assert!(fixture.records().await.is_empty());
        assert_eq!(shop.submit(&token, None, "").await.problem(), "token-invalid");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_are_told_how_long_it_is_remembered() {
    let fixture = Fixture::new();
    let [completed, expires] = ["x-completed", "x-expires"].map(HeaderName::from_static);
    let shop = fixture.shop(0, |layer| {
        layer.retention(Duration::from_secs(1)).completed_header(completed.clone()).expires_header(expires.clone())
    });
    let token = shop.token(None).await;
    fixture.clock.advance(Duration::from_secs(100));
    let (_, told) = shop.send_for_headers(submission(&token, "tea")).await;
    let [completed, expires] = [completed, expires].map(|name| second_of_day(told[name].to_str().unwrap()));
    assert_eq!((expires + DAY - completed) % DAY, 200 + SKEW.as_secs());
}

/// A process whose clock is behind by the skew accepts it longest; by then it must not be forgotten.
#[tokio::test(start_paused = true)]
async fn clocks_may_differ_by_the_skew() {
    let skew = i64::try_from(SKEW.as_millis()).unwrap();
    for (issuer, spender, late) in [(0, 0, -skew), (0, skew, 0), (skew, skew, 0), (skew, 0, 0), (0, -skew, -skew)] {
        let fixture = Fixture::new();
        let [issuer, spender, late] = [issuer, spender, late].map(|offset| fixture.shop(offset, |layer| layer));
        let token = issuer.token(None).await;
        assert_eq!(spender.submit(&token, None, "").await.status, 201);
        for _ in 0..400 {
            fixture.clock.advance(Duration::from_secs(1));
            let problem = late.submit(&token, None, "").await.problem();
            assert!(problem == "token-used" || problem == "token-invalid", "{problem}");
        }
        assert_eq!(late.runs.get(), 0);
        assert_eq!(late.submit(&token, None, "").await.problem(), "token-invalid");
    }
}

/// A process whose wall clock its test sets.
struct Settable {
    fixture: Fixture,
    wall: Arc<AtomicU64>,
    shop: Shop,
}

const HOUR: u64 = 60 * 60;

impl Settable {
    /// It begins an hour past the epoch.
    fn new() -> Self {
        let fixture = Fixture::new();
        let (wall, clock) = (Arc::new(AtomicU64::new(HOUR)), fixture.clock.clone());
        let now = {
            let wall = Arc::clone(&wall);
            move || {
                let wall = Duration::from_secs(wall.load(Ordering::SeqCst)) + Duration::from_millis(clock.now());
                SystemTime::UNIX_EPOCH + wall
            }
        };
        let tokens = Tokens::signed(fixture.store.clone(), keys()).lifetime(LIFE).clock_skew(SKEW).clock(now);
        Self { shop: Shop::new(tokens, |layer| layer), wall, fixture }
    }

    fn set(&self, seconds: u64) {
        self.wall.store(seconds, Ordering::SeqCst);
    }

    /// The time that nobody sets goes on, the store's too.
    async fn pass(&self, time: Duration) {
        self.fixture.clock.advance(time);
        tokio::time::advance(time).await;
    }
}

/// By then its record is gone.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_no_expired_token_good() {
    let process = Settable::new();
    let shop = &process.shop;
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "").await.status, 201);
    process.pass(LIFE + SKEW).await;
    assert_eq!(shop.submit(&token, None, "").await.problem(), "token-invalid");
    assert!(process.fixture.records().await.is_empty());
    process.set(0);
    assert_eq!(shop.submit(&token, None, "").await.problem(), "token-invalid");
    assert_eq!(shop.runs.get(), 1);

    // What is issued meanwhile is good all the same.
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "").await.status, 201);
    assert_eq!(shop.submit(&token, None, "").await.problem(), "token-used");
}

/// The store goes on: a clock that stood still would find the token good once its record is gone.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_no_token_live_longer() {
    for issued_before in [true, false] {
        let process = Settable::new();
        let shop = &process.shop;
        let mut token = shop.token(None).await;
        if issued_before {
            assert_eq!(shop.submit(&token, None, "").await.status, 201);
        }
        process.set(0);
        if !issued_before {
            token = shop.token(None).await;
            assert_eq!(shop.submit(&token, None, "").await.status, 201);
        }
        process.pass(LIFE / 2).await;
        assert_eq!(shop.submit(&token, None, "").await.problem(), "token-used");
        process.pass(LIFE / 2 + SKEW).await;
        assert_eq!(process.fixture.records().await.is_empty(), issued_before);
        assert_eq!(shop.submit(&token, None, "").await.problem(), "token-invalid");
        assert_eq!(shop.runs.get(), 1);
    }
}

/// The others accept its tokens until they have come as far, however far it was ahead.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_and_is_corrected_spends_no_token_twice() {
    let process = Settable::new();
    let token = process.shop.token(None).await;
    process.set(0);
    assert_eq!(process.shop.submit(&token, None, "").await.status, 201);
    let right = process.fixture.shop(0, |layer| layer);
    for _ in 0..HOUR / 60 + 6 {
        process.pass(Duration::from_secs(60)).await;
        let problem = right.submit(&token, None, "").await.problem();
        assert!(problem == "token-used" || problem == "token-invalid", "{problem}");
    }
    assert_eq!(right.submit(&token, None, "").await.problem(), "token-invalid");
    assert_eq!(right.runs.get(), 0);
}

/// It came while it was good, and its body when it was not even remembered any more.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_held_back_does_not_spend_it_twice() {
    use axum::body::Body;
    use tower::ServiceExt;

    let fixture = Fixture::new();
    let shop = fixture.shop(0, |layer| layer.on_duplicate(OnDuplicate::Replay));
    let token = shop.token(None).await;
    let (go_on, told) = tokio::sync::oneshot::channel::<()>();
    let body = Body::from_stream(futures_util::stream::once(async {
        let _ = told.await;
        Ok::<_, std::convert::Infallible>(axum::body::Bytes::from("tea"))
    }));
    let request = crate::tokens::fixture::submission(&token, "").map(|_| body);
    let slow = tokio::spawn(shop.app.clone().oneshot(request));
    tokio::task::yield_now().await;
    assert_eq!(shop.submit(&token, None, "tea").await.status, 201);
    fixture.clock.advance(LIFE + SKEW);
    assert!(fixture.records().await.is_empty());
    go_on.send(()).unwrap();
    assert_eq!(crate::common::see(slow.await.unwrap().unwrap()).await.problem(), "token-invalid");
    assert_eq!(shop.runs.get(), 1);
}

/// Claims that were sent while it was good may still be on their way, however well clocks agree.
#[tokio::test(start_paused = true)]
async fn it_is_remembered_for_half_a_minute_beyond_its_life_at_least() {
    let fixture = Fixture::new();
    let clock = fixture.clock.clone();
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(clock.now());
    let tokens = Tokens::signed(fixture.store.clone(), keys()).lifetime(LIFE).clock_skew(Duration::ZERO).clock(now);
    let shop = Shop::new(tokens, |layer| layer);
    let token = shop.token(None).await;
    assert_eq!(shop.submit(&token, None, "").await.status, 201);
    assert_eq!(fixture.records().await[0].expires_in, LIFE + Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_failure_gives_it_back_and_is_not_remembered_longer_than_it() {
    let fixture = Fixture::new();
    let shop = fixture.shop(0, |layer| layer);
    let token = shop.token(None).await;
    fixture.clock.advance(Duration::from_secs(250));
    assert_eq!(shop.submit(&token, None, "bad").await.status, 422);
    let record = &fixture.records().await[0];
    assert_eq!((record.state, record.attempt), (State::Released, 1));
    assert_eq!(record.expires_in, Duration::from_secs(50) + SKEW);
    assert_eq!(shop.submit(&token, None, "corrected").await.status, 201);
    assert_eq!(shop.submit(&token, None, "corrected").await.problem(), "token-used");
}

/// Nor may a handler shorten it, or one that takes longer than the token is good.
#[tokio::test(start_paused = true)]
async fn what_the_handler_wishes_does_not_count() {
    use axum::{Router, routing::post};
    use tower_idempotency::Operation;

    let fixture = Fixture::new();
    let tokens = process(&fixture.store, keys(), 0, &fixture.clock);
    let slow = Arc::new(AtomicU64::new(0));
    let handler = {
        let (clock, slow) = (fixture.clock.clone(), slow.clone());
        move |operation: Operation| async move {
            operation.keep_for(Duration::from_millis(1));
            clock.advance(Duration::from_secs(slow.load(Ordering::SeqCst)));
            "ordered"
        }
    };
    let app = Router::new().route("/submit", post(handler).layer(tokens.layer("order")));
    for (takes, remembered) in [(0, LIFE + SKEW), (299, Duration::from_secs(1) + SKEW), (1000, SKEW)] {
        slow.store(takes, Ordering::SeqCst);
        let token = tokens.issue("order", None).await.unwrap();
        let request = crate::tokens::fixture::submission(token.as_str(), "");
        assert_eq!(tower::ServiceExt::oneshot(app.clone(), request).await.unwrap().status(), 200);
        let records = fixture.records().await;
        assert!(records.iter().any(|record| record.expires_in == remembered), "{takes}: {records:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_replaced_while_tokens_are_out() {
    let fixture = Fixture::new();
    let (old, new) = ([1; 32], [2; 32]);
    let shop = |keys| Shop::new(process(&fixture.store, keys, 0, &fixture.clock), |layer| layer);
    let before = shop(SigningKeys::new(old).unwrap());
    let between = shop(SigningKeys::new(new).unwrap().accept(old).unwrap());
    let after = shop(SigningKeys::new(new).unwrap());
    let token = before.token(None).await;
    // Its record has the same name under whatever keys it is accepted.
    assert_eq!(between.submit(&token, None, "").await.status, 201);
    assert_eq!(before.submit(&token, None, "").await.problem(), "token-used");
    assert_eq!(after.submit(&token, None, "").await.problem(), "token-invalid");
    let token = between.token(None).await;
    assert_eq!(before.submit(&token, None, "").await.problem(), "token-invalid");
    assert_eq!(after.submit(&token, None, "").await.status, 201);
}

/// A successor that is signed anew, by another secret and later, is the same token: its record goes by its nonce.
#[tokio::test(start_paused = true)]
async fn a_successor_is_one_token_under_whatever_keys() {
    let fixture = Fixture::new();
    let (old, new) = ([1; 32], [2; 32]);
    let shop = |keys| Shop::new(process(&fixture.store, keys, 0, &fixture.clock), TokenLayer::rotate_on_failure);
    let before = shop(SigningKeys::new(old).unwrap().accept(new).unwrap());
    let after = shop(SigningKeys::new(new).unwrap().accept(old).unwrap());
    let token = before.token(None).await;
    let successor = async |shop: &Shop| {
        let (_, headers) = shop.send_for_headers(crate::tokens::fixture::submission(&token, "bad")).await;
        headers["x-submit-token"].to_str().unwrap().to_owned()
    };
    let first = successor(&before).await;
    fixture.clock.advance(Duration::from_secs(100));
    let again = successor(&after).await;
    assert_ne!(first, again);
    assert_eq!(after.submit(&again, None, "good").await.status, 201);
    assert_eq!(before.submit(&first, None, "good").await.problem(), "token-used");
    // It expires with what was given out first.
    let expires_in: Vec<_> = fixture.records().await.iter().map(|record| record.expires_in).collect();
    assert!(expires_in.contains(&(Duration::from_secs(200) + SKEW)), "{expires_in:?}");
}

#[tokio::test(start_paused = true)]
async fn issuing_needs_no_store_and_spending_does() {
    let store = FaultyStore::new(MemoryStore::new());
    let shop = Shop::new(Tokens::signed(store.clone(), keys()), |layer| layer.on_duplicate(OnDuplicate::Reject));
    store.faults().on(StoreVerb::Issue).fail(StoreErrorKind::Unavailable);
    let token = shop.token(None).await;
    store.faults().on(StoreVerb::Claim).once().after_effect().fail(StoreErrorKind::Timeout);
    assert_eq!(shop.submit(&token, None, "").await.problem(), "store-unavailable");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(shop.submit(&token, None, "").await.status, 201);
}

#[test]
fn keys_are_not_shown() {
    let tokens =
        Tokens::signed(MemoryStore::new(), SigningKeys::new("a secret that is long enough, and some more").unwrap());
    let shown = format!("{tokens:?} {:?}", tokens.layer("order"));
    assert!(!shown.contains("secret that"), "{shown}");
}
