use std::time::Duration;

use http::StatusCode;

use super::Preset;
use super::callback::{TEXT, callback, reply};
use crate::key;

/// Longer than the 30 days for which Adyen keeps sending.
const RETENTION: Duration = Duration::from_secs(32 * 24 * 60 * 60);

/// Creates the preset for Adyen's standard webhooks in JSON. The key is `pspReference`, `eventCode` and `success` of
/// the one item.
///
/// Success is any 2xx; old accounts also expect the text `[accepted]`, which a duplicate receives. After any other
/// answer, Adyen sends again for 30 days: after 2, 5, 10, 15 and 30 minutes, 1, 2 and 4 hours, then every 8 hours. So
/// records are kept for 32 days.
///
/// Adyen has no identifier for an event. According to Adyen, duplicates have the same `pspReference` and `eventCode`,
/// and a failure that is followed by a success of the same event differs in `success`. The signature
/// (`additionalData.hmacSignature`) covers these three, the merchant's account and reference, and the amount, and no
/// other member: the handler must not act on any other member without asking Adyen. Webhooks of other kinds (platforms,
/// reports) have an `id` or a type of their own, so they need another key.
///
/// Adyen publishes no limit for the body; the [layer's own](crate::Policy::request_limit) applies.
///
/// Source: "Handle webhook events", "Troubleshoot" and "Verify HMAC signatures", Adyen's documentation.
pub fn adyen() -> Preset {
    let item = |member: &str| key::json(&format!("/notificationItems/0/NotificationRequestItem/{member}"));
    let delivery = callback(
        key::all([item("pspReference"), item("eventCode"), item("success")]),
        reply(StatusCode::OK, TEXT, "[accepted]"),
        reply(StatusCode::SERVICE_UNAVAILABLE, None, ""),
    );
    Preset::new(move |layer| layer.preset(delivery.clone()).retention(RETENTION))
}
