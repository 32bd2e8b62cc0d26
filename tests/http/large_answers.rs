//! Answers that a memory store has no bytes left for: each is sent, none is dropped, and nothing runs twice.

use axum::{Router, routing::post as route};
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, store::StoreAdmin};

use crate::common::{Counter, post, see};

const MIB: usize = 1024 * 1024;
const REQUESTS: usize = 500;

#[tokio::test]
async fn five_hundred_answers_of_almost_a_mebibyte_stay_within_the_bound() {
    let (store, runs) = (MemoryStore::builder().max_bytes(16 * MIB).build(), Counter::default());
    let handler = {
        let runs = runs.clone();
        move || async move { format!("{:08}", runs.next()).repeat(MIB / 8 - 1024) }
    };
    let layer = IdempotencyLayer::new(store.clone()).policy(Policy::replay()).unscoped();
    let app = Router::new().route("/orders", route(handler).layer(layer));
    let ask =
        async |number: usize| see(app.clone().oneshot(post("/orders", &number.to_string(), "")).await.unwrap()).await;
    for number in 0..REQUESTS {
        let seen = ask(number).await;
        assert_eq!((seen.status.as_u16(), seen.replayed), (200, false));
        assert!(seen.body.starts_with(&format!("{:08}", number + 1)));
    }
    let settled = u64::try_from(REQUESTS).unwrap();
    assert_eq!(store.stats().await.unwrap().settled, settled);
    for number in 0..REQUESTS {
        let seen = ask(number).await;
        if number < 16 {
            assert_eq!((seen.status.as_u16(), seen.replayed), (200, true), "{number}");
            assert!(seen.body.starts_with(&format!("{:08}", number + 1)));
        } else {
            assert_eq!(seen.status.as_u16(), 409, "{number}: {}", seen.body);
        }
    }
    assert_eq!(runs.get(), REQUESTS);
}
