//! On MariaDB.

use sqlx::MySql;

use super::{staging, what_holds_everywhere};

what_holds_everywhere!(MySql);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_late_is_not_skipped() {
    staging::what_is_committed_late_is_not_skipped::<MySql>().await;
}
