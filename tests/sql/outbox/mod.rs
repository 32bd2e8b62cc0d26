//! The outbox on every database: what is committed is sent, in order per key, whatever dies.

mod crashes;
mod destinations;
mod inspection;
#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(feature = "postgres")]
mod postgres;
mod relaying;
mod shop;
#[cfg(feature = "sqlite")]
mod sqlite;
mod staging;
mod stopping;

/// What holds on all of them.
macro_rules! what_holds_everywhere {
    ($database:ty) => {
        crate::on_one_server!($database:
            staging::{
                committed_is_sent, rolled_back_is_nothing, with_the_transaction_of_a_layer, an_id_is_taken_once,
                what_no_column_holds_is_refused, in_a_table_of_another_name,
            },
            relaying::{
                in_order_for_each_key, a_long_row_of_one_key, a_key_that_fails_holds_up_itself, a_sender_that_hangs_or_panics,
                several_relays_send_once, overtaken_ones_are_not_marked,
            },
            destinations::{
                a_destination_that_hangs_holds_up_no_other, destinations_that_fail_are_tried_one_at_a_time,
                what_was_never_tried_goes_before_what_failed, what_is_due_for_the_longest_comes_first,
                a_key_of_several_topics_keeps_to_the_bound_of_each,
            },
            stopping::{dropped_half_way, stopped_with_the_message_at_hand, woken_after_a_commit},
            inspection::{
                what_waits_is_seen, what_can_never_be_sent_is_discarded, what_was_sent_is_removed, what_waits_is_asked_about,
                what_happens_is_reported,
            },
            crashes::{killed_relays},
        );

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "it is what the processes of the test of crashes run"]
        async fn relay_process() {
            super::crashes::relay_process::<$database>().await;
        }
    };
}
use what_holds_everywhere;
