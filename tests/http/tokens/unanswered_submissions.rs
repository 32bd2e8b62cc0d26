//! How a submission can end without an answer.

use std::{future::pending, sync::Arc, time::Duration};

use axum::{Router, body::Bytes, http::StatusCode, routing::post};
use tokio::runtime::Builder;
use tower::ServiceExt;
#[cfg(feature = "signed-tokens")]
use tower_idempotency::token::SigningKeys;
use tower_idempotency::{MemoryStore, Operation, Tokens, testing::ManualClock};

use crate::{
    common::{Counter, Seen, see},
    tokens::fixture::submission,
};

const LEASE: Duration = Duration::from_secs(30);

struct Fixture {
    clock: ManualClock,
    tokens: Tokens,
    app: Router,
    begun: Counter,
}

/// The handler never ends if the body is "hang", and waits for a while if it is "slow".
fn fixtures() -> Vec<Fixture> {
    let clock = ManualClock::new();
    let store = Arc::new(MemoryStore::builder().clock(clock.clone()).build());
    let kinds = [
        Tokens::new(store.clone()),
        #[cfg(feature = "signed-tokens")]
        Tokens::signed(store, SigningKeys::new([7; 32]).unwrap()).clock({
            let clock = clock.clone();
            move || std::time::UNIX_EPOCH + Duration::from_millis(clock.now())
        }),
    ];
    let fixture = |tokens: Tokens| {
        let begun = Counter::default();
        let handler = {
            let begun = begun.clone();
            move |operation: Operation, body: Bytes| async move {
                begun.next();
                match &body[..] {
                    b"hang" => pending().await,
                    b"slow" => tokio::time::sleep(Duration::from_millis(50)).await,
                    _ => {}
                }
                (StatusCode::CREATED, format!("attempt {}", operation.attempt()))
            }
        };
        let app = Router::new().route("/submit", post(handler).layer(tokens.layer("order").lease(LEASE)));
        Fixture { clock: clock.clone(), tokens, app, begun }
    };
    kinds.into_iter().map(fixture).collect()
}

impl Fixture {
    async fn submit(&self, token: &str, body: &str) -> Seen {
        see(self.app.clone().oneshot(submission(token, body)).await.unwrap()).await
    }

    async fn token(&self) -> String {
        self.tokens.issue("order", None).await.unwrap().as_str().to_owned()
    }

    async fn has_begun(&self) {
        while self.begun.get() == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// The next try comes when the lease is over, and learns that it is not the first.
#[test]
fn a_process_that_dies_gives_it_back() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    for fixture in fixtures() {
        let process = runtime();
        let token = process.block_on(async {
            let token = fixture.token().await;
            tokio::spawn(fixture.app.clone().oneshot(submission(&token, "hang")));
            fixture.has_begun().await;
            token
        });
        // Nothing of it is left, and the store has received nothing.
        process.shutdown_background();
        runtime().block_on(async {
            assert_eq!(fixture.submit(&token, "").await.problem(), "request-in-progress");
            fixture.clock.advance(LEASE);
            assert_eq!(fixture.submit(&token, "").await, Seen::first(201, "attempt 2"));
            assert_eq!(fixture.submit(&token, "").await.problem(), "token-used");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_has_spent_it() {
    for fixture in fixtures() {
        let token = fixture.token().await;
        let submission = tokio::spawn(fixture.app.clone().oneshot(submission(&token, "slow")));
        fixture.has_begun().await;
        submission.abort();
        assert_eq!(fixture.submit(&token, "").await.problem(), "request-in-progress");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(fixture.submit(&token, "").await.problem(), "token-used");
        assert_eq!(fixture.begun.get(), 1);
    }
}
