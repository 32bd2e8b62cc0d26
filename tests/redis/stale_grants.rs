//! A process that stands still with its claim on the way.

#[path = "../http/common/stale_grants.rs"]
mod asked;

use tower_idempotency::RedisStore;

use self::asked::{Leased, a_stale_grant_runs_nothing};
use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_comes_when_its_lease_is_over_is_given_back() {
    let server = Server::start(&[]);
    let url = server.url();
    let connect = move || {
        let url = url.clone();
        async move { RedisStore::connect(&url).await.unwrap() }
    };
    a_stale_grant_runs_nothing::<Leased, _, _>(connect, true).await;
}
