//! Layers on each store.

use super::{
    kept_request::{a_request_past_the_limit_is_not_kept, the_request_is_kept_where_asked_for},
    store,
    windows::windows_hold_and_end,
};
use crate::database::TestDatabase;

pub(super) async fn windows_hold<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    windows_hold_and_end(store).await;
}

pub(super) async fn the_request_is_kept<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    the_request_is_kept_where_asked_for(store.clone()).await;
    a_request_past_the_limit_is_not_kept(store).await;
}
