//! The SQL stores keep the rules of every store, and go through what a database goes through.

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod clocks;
mod conformance;
mod frozen_formats;
#[path = "../../http/common/kept_request.rs"]
mod kept_request;
mod large_answers;
mod layers;
#[cfg(feature = "mysql")]
mod mariadb;
mod migrations;
#[cfg(feature = "postgres")]
mod postgres;
mod purging;
mod races;
mod records;
#[cfg(feature = "sealed")]
mod sealed;
#[cfg(feature = "sqlite")]
mod sqlite;
mod waiting;
#[path = "../../http/common/walk.rs"]
mod walk;
#[path = "../../http/common/windows.rs"]
mod windows;
#[path = "../../http/common/written_formats.rs"]
mod written_formats;

use std::sync::Arc;

use sqlx::Pool;
use tower_idempotency::sql::SqlStore;

use crate::database::TestDatabase;

/// A store on a database of its own.
async fn store<D: TestDatabase>() -> (Arc<D::Place>, SqlStore<D>) {
    let place = D::place().await;
    let store = store_on::<D>(&place).await;
    (place, store)
}

/// A store of a process, with its own connections.
async fn store_on<D: TestDatabase>(place: &D::Place) -> SqlStore<D> {
    let store = D::build(SqlStore::<D>::builder(), &D::url(place)).await;
    store.migrate().await.unwrap();
    store
}

/// Executes a text of one or several statements, each of which is its own transaction unless the text says otherwise.
async fn run<D: TestDatabase>(pool: &Pool<D>, text: &str) {
    D::say(&mut *pool.acquire().await.unwrap(), text).await.unwrap();
}

/// What holds on all of them.
macro_rules! what_holds_everywhere {
    ($database:ty) => {
        crate::on_one_server!($database:
            conformance::{the_rules_of_every_store, a_random_walk_agrees_with_the_rules},
            frozen_formats::{the_fixtures_of_a_new_version, rows_of_each_version_are_read},
            layers::{windows_hold, the_request_is_kept},
            migrations::{
                the_files_of_the_package, a_start_beside_a_long_transaction, a_table_that_lacks_something,
                another_table_is_left_alone, columns_of_a_later_version_are_named,
            },
            purging::{what_has_expired_goes, a_namespace_is_purged_by_itself},
            races::{many_tasks_on_the_same_keys},
            records::{
                all_of_a_claim_is_kept, a_claim_can_be_taken_back, an_abandoned_claim_can_be_taken_back,
                a_row_of_a_later_version,
            },
            large_answers::{an_answer_that_is_too_large},
            waiting::{many_wait_for_one},
        );
        #[cfg(feature = "sealed")]
        crate::on_one_server!($database: sealed::{the_rules_of_every_store});
    };
}
use what_holds_everywhere;
