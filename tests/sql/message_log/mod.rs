//! The message log on every database: what came in is there, whatever became of it.

mod away;
#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(feature = "postgres")]
mod postgres;
mod requests;
mod service;
#[cfg(feature = "sqlite")]
mod sqlite;
mod table;

/// What holds on all of them.
macro_rules! what_holds_everywhere {
    ($database:ty) => {
        crate::on_one_server!($database:
            table::{
                what_is_written_is_read, an_id_is_taken_once, an_answer_is_noted_once, found_by_key_route_and_time,
                page_by_page, what_is_old_is_removed, what_is_old_goes_by_itself,
                in_a_table_of_another_name,
            },
            requests::{
                every_try_is_on_record, what_is_written_of_a_request, headers_and_queries_as_one_chooses,
                a_long_body_is_cut_and_passed_on_whole, a_body_that_breaks_is_on_record, a_key_in_the_body,
                what_is_rolled_back_is_on_record, what_is_not_answered_has_no_status, without_answers,
            },
            away::{
                a_log_that_is_away_refuses, a_log_that_hangs_refuses, in_words_of_ones_own, going_on_without_a_log,
                an_answer_that_cannot_be_noted_is_sent,
            },
        );
    };
}
use what_holds_everywhere;
