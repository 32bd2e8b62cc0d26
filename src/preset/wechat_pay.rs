use http::StatusCode;

use super::Preset;
use super::{
    callback::{JSON, XML, callback, reply},
    word::{by_word, unless},
};
use crate::{key, scope};

/// Creates the preset for WeChat Pay v2's notifications. The key is the XML element `out_trade_no`, within the merchant
/// `mch_id`.
///
/// Success is `return_code` SUCCESS in XML. After any other answer, WeChat sends again: after 15, 15, 30 and 180
/// seconds, four times after 30 minutes, and after an hour. A handler that answers another `return_code` with status
/// 200 has failed. The number is the merchant's own, so the merchant is the [scope](crate::IdempotencyLayer::scope).
///
/// The handler still checks `result_code`, `appid` and `total_fee` against the order. Refund notifications of v2 are
/// encrypted and have no `out_trade_no` outside the ciphertext: they need another route and another key.
///
/// The platform publishes no limit for the body; the [layer's own](crate::Policy::request_limit) is far above a
/// document of this kind.
///
/// Source: "Payment result notification", WeChat Pay API v2.
pub fn wechat_pay_v2() -> Preset {
    const SUCCESS: &str =
        "<xml><return_code><![CDATA[SUCCESS]]></return_code><return_msg><![CDATA[OK]]></return_msg></xml>";
    const FAIL: &str =
        "<xml><return_code><![CDATA[FAIL]]></return_code><return_msg><![CDATA[IN PROGRESS]]></return_msg></xml>";
    let merchant = scope::from_key(key::xml("mch_id"));
    let order = callback(
        key::xml("out_trade_no"),
        by_word(StatusCode::OK, XML, SUCCESS, says_failure),
        reply(StatusCode::SERVICE_UNAVAILABLE, XML, FAIL),
    );
    Preset::new(move |layer| layer.preset(order.clone()).scope(merchant.clone()).keep(unless(says_failure)))
}

fn says_failure(body: &[u8]) -> bool {
    let body = String::from_utf8_lossy(body);
    let code = body.split_once("<return_code>").map(|(_, code)| code.trim_start());
    code.is_some_and(|code| !code.starts_with("<![CDATA[SUCCESS]]>") && !code.starts_with("SUCCESS<"))
}

/// Creates the preset for WeChat Pay v3's notifications. The key is the JSON member `id`, which identifies the
/// notification.
///
/// Success is 200 or 204 without a body. WeChat sends again after a 4xx or 5xx, over 24 hours and 4 minutes: after 15,
/// 15 and 30 seconds, 3, 10, 20, 30, 30, 30 and 60 minutes, three times after 3 hours, twice after 6. Any other status
/// is not a success either. The status takes precedence over the body: a 200 with `FAIL` in its body ends the
/// deliveries.
///
/// The handler still decrypts `resource` and checks the order in it. One order can have several notifications. If no
/// notification arrives, query the order (`/v3/pay/transactions/out-trade-no/…`).
///
/// The platform publishes no limit for the body; the [layer's own](crate::Policy::request_limit) is far above a
/// document of this kind.
///
/// Source: "Payment notification" and "Signature verification", WeChat Pay API v3.
pub fn wechat_pay_v3() -> Preset {
    callback(
        key::json("/id"),
        reply(StatusCode::NO_CONTENT, None, ""),
        reply(StatusCode::SERVICE_UNAVAILABLE, JSON, r#"{"code":"FAIL","message":"in progress"}"#),
    )
}
