//! A process that stands still with its claim on the way.

#[path = "../../http/common/stale_grants.rs"]
mod asked;

use tower_idempotency::sql::SqlStore;

use self::asked::{InTransactions, Leased, a_stale_grant_runs_nothing};
use super::process::Process;
use crate::database::TestDatabase;

pub(crate) async fn by_a_lease<D: TestDatabase>() {
    let place = D::place().await;
    Process::<D>::start(&place).await;
    let url = D::url(&place);
    let connect = move || {
        let url = url.clone();
        async move { SqlStore::<D>::new(D::connect(&url, 4).await) }
    };
    a_stale_grant_runs_nothing::<Leased, _, _>(connect, true).await;
}

/// The database ends a transaction in which nothing happens for a lease. SQLite does not: its one writer keeps all others
/// out until it gives its claim back.
pub(crate) async fn in_a_transaction<D: TestDatabase>() {
    let place = D::place().await;
    Process::<D>::start(&place).await;
    let url = D::url(&place);
    let connect = move || {
        let url = url.clone();
        async move { SqlStore::<D>::new(D::connect(&url, 4).await) }
    };
    a_stale_grant_runs_nothing::<InTransactions, _, _>(connect, D::NAME != "SQLite").await;
}
