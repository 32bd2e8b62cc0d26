//! The effect and the record in one transaction, on every database: together or not at all.

mod crashes;
#[cfg(feature = "mysql")]
mod mariadb;
mod messages_and_functions;
mod misuse;
mod outcomes;
mod ownership;
#[cfg(feature = "postgres")]
mod postgres;
mod process;
mod races;
mod records;
#[cfg(feature = "sealed")]
mod sealed;
mod sessions;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stale_grants;
mod statements;

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
                a_full_pool, a_second_connection, a_crowd_that_waits_asks_as_one,
            },
            misuse::{
                kept_beyond_the_answer, taken_twice, an_error_that_is_swallowed, ended_by_hand, committed_by_hand,
                a_savepoint_left_open, of_another_database, of_a_duplicate_that_passes_through,
            },
            messages_and_functions::{
                messages, functions, attempts_are_bounded, attempts_of_all_kinds_are_bounded,
                what_is_rolled_back_is_given_back, a_commit_that_fails_is_given_back,
                a_permanent_failure_is_recorded_without_its_effect, a_failure_overwrites_nothing,
                counting_costs_one_statement_of_a_failure,
            },
            records::{
                over_a_record_that_expired, over_one_that_was_released, over_a_lapsed_one, beside_a_living_one,
                another_request_is_told, settled_by_the_handler,
                a_transaction_knows_its_caller,
            },
            crashes::{killed_at_any_moment},
        );
        #[cfg(feature = "sealed")]
        crate::on_one_server!($database:
            sealed::{
                the_answer_is_sealed_and_committed_with_the_effect, a_transaction_that_is_dropped_is_rolled_back,
                a_failure_that_is_recorded_is_sealed, around_a_cache, a_handler_seals_what_it_settles_by_itself,
            },
        );
    };
}
use what_holds_everywhere;
