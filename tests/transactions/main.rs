//! The effect and the record in one transaction, on every database: together or not at all.
#![cfg(all(
    feature = "axum",
    feature = "json",
    feature = "testing",
    any(feature = "mysql", feature = "postgres", feature = "sqlite")
))]

#[cfg(feature = "tracing")]
#[path = "../sql/counting.rs"]
mod counting;
mod crashes;
mod elsewhere;
#[path = "../sql/folder.rs"]
mod folder;
mod lab;
#[cfg(feature = "mysql")]
mod mariadb;
mod misuse;
mod outcomes;
mod ownership;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod proxy;
mod races;
mod records;
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[path = "../sql/server.rs"]
mod server;
mod sessions;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod shared;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stale_grants;
mod statements;

/// One test for each module, on one server, with a database of its own for each function.
macro_rules! on_one_server {
    ($database:ty: $($module:ident::{$($test:ident),* $(,)?}),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $module() {
                let _server = <$database as crate::lab::Lab>::place().await;
                $(
                    println!("{}", stringify!($test));
                    crate::$module::$test::<$database>().await;
                )*
            }
        )*
    };
}
pub(crate) use on_one_server;

/// What holds on all of them.
macro_rules! what_holds_everywhere {
    ($database:ty) => {
        crate::on_one_server!($database:
            outcomes::{
                success_is_kept_once, failure_leaves_nothing, a_panic_leaves_nothing, a_broken_answer_leaves_nothing,
                a_client_that_leaves_an_attached_run_leaves_nothing, a_client_that_leaves_does_not_stop_the_run,
                without_taking_the_transaction, a_long_answer_leaves_a_tombstone, what_is_kept_is_committed,
                dropped_at_any_moment,
                a_late_constraint_is_no_success, a_request_that_breaks_leaves_nothing,
            },
            ownership::{
                whose_key_it_is, child_keys_after_a_rollback, child_keys_of_a_message_outlive_a_rotation,
                answers_that_undo_an_attempt_leave_nothing, an_undone_attempt_leaves_the_record_as_it_was,
            },
            stale_grants::{by_a_lease, in_a_transaction},
            statements::{a_handler_settles_by_a_statement, a_key_is_claimed_by_a_statement},
            races::{
                many_racers, duplicates_of_settled_keys, three_of_which_the_first_fails, who_waits_gets_the_answer,
                a_full_pool, a_second_connection,
            },
            misuse::{
                kept_beyond_the_answer, taken_twice, an_error_that_is_swallowed, ended_by_hand, committed_by_hand,
                a_savepoint_left_open, of_another_database, of_a_duplicate_that_passes_through,
            },
            elsewhere::{
                messages, functions, attempts_are_bounded, attempts_of_all_kinds_are_bounded,
                what_is_rolled_back_is_given_back, a_commit_that_fails_is_given_back,
                a_permanent_failure_is_recorded_without_its_effect, a_failure_overwrites_nothing,
            },
            records::{
                over_a_record_that_expired, over_one_that_was_released, over_a_lapsed_one, beside_a_living_one,
                another_request_is_told, settled_by_the_handler,
                a_transaction_knows_its_caller,
            },
        );
    };
}
pub(crate) use what_holds_everywhere;
