use http::StatusCode;

use super::Preset;
use super::{
    callback::{TEXT, callback, reply},
    word::{by_word, unless},
};
use crate::key::{self, KeyExtractor};

/// Creates the preset for Alipay's asynchronous notifications, by notification. The key is the form field `notify_id`.
///
/// Success is the text `success`. After any other answer, Alipay sends again, eight times in 25 hours (after 4, 10 and
/// 10 minutes, 1, 2, 6 and 15 hours). A handler that answers `fail` with status 200 has failed. `notify_id` is the same
/// in all deliveries of one notification. But one order has several notifications (paid, refunded, closed), and each of
/// them reaches the handler once. To run once for an *order*, see [`alipay_by_order`].
///
/// The handler still checks `app_id`, `seller_id`, the order number and `total_amount` against the order.
///
/// The platform publishes no limit for the body; the [layer's own](crate::Policy::request_limit) is far above a form of
/// this kind.
///
/// Source: "Asynchronous notification", Alipay Open Platform; the schedule as quoted by its integrators.
pub fn alipay() -> Preset {
    alipay_by(key::form("notify_id"))
}

/// Creates the preset for Alipay's asynchronous notifications, by merchant order number. The key is the form fields
/// `out_trade_no` and `trade_status`, so each status of an order runs once.
///
/// Alipay may send a second notification, with another `notify_id`, of a fact that it has already notified. By order
/// number and status, the second one is a duplicate too. Alipay notifies a partial refund with the status of the trade,
/// so several partial refunds of one order would count as one: if you refund in parts, use [`alipay`].
pub fn alipay_by_order() -> Preset {
    alipay_by(key::all([key::form("out_trade_no"), key::form("trade_status")]))
}

fn alipay_by(key: KeyExtractor) -> Preset {
    let again = reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, "fail");
    let delivery = callback(key, by_word(StatusCode::OK, TEXT, "success", says_failure), again);
    Preset::new(move |layer| layer.preset(delivery.clone()).keep(unless(says_failure)))
}

fn says_failure(body: &[u8]) -> bool {
    let word = body.trim_ascii();
    word.eq_ignore_ascii_case(b"fail") || word.eq_ignore_ascii_case(b"failure")
}
