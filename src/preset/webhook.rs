use http::HeaderMap;

use super::Preset;
use super::callback::webhook;
use crate::key::{self, KeyError};

/// Creates the preset for Stripe's webhooks. The key is the JSON member `id` of the event.
///
/// Success is any 2xx. After any other answer, also a redirection, Stripe sends again, for up to three days. Stripe may
/// send two events for one change; if that matters, compare `data.object.id` with `type` in the handler. Events arrive
/// in any order.
///
/// Stripe publishes no limit for the body; the [layer's own](crate::Policy::request_limit) applies.
///
/// Source: "Receive Stripe events in your webhook endpoint", Stripe's documentation.
pub fn stripe_webhook() -> Preset {
    webhook(key::json("/id"))
}

/// Creates the preset for Standard Webhooks. The key is the header `webhook-id`, or `svix-id`, which is the same in all
/// deliveries of a message.
///
/// Success is any 2xx. The example schedule of the specification lasts for more than 75 hours, and some senders keep
/// sending for longer: then set a longer [retention](crate::IdempotencyLayer::retention).
///
/// Svix, whose libraries many senders use, sends `svix-id`, `svix-timestamp` and `svix-signature` by default. Its
/// libraries verify these names first, and those of the specification verify `webhook-id`. A signature covers one
/// identifier, so a request that has both headers with different values is refused (400 `key-invalid`): otherwise
/// anybody could add a header to a captured delivery and have it run again.
///
/// The specification recommends payloads of less than 20 kB; the [layer's own](crate::Policy::request_limit) limit
/// applies.
///
/// Source: the Standard Webhooks specification; "Verifying webhooks manually", Svix's documentation.
pub fn standard_webhooks() -> Preset {
    webhook(key::from_fn(|parts| {
        let names = ["webhook-id", "svix-id"];
        let mut ids = names.into_iter().filter_map(|name| only_line(&parts.headers, name).transpose());
        let (Some(id), other) = (ids.next().transpose()?, ids.next().transpose()?) else { return Ok(None) };
        if other.is_some_and(|other| other != id) {
            return Err(KeyError::malformed("`webhook-id` and `svix-id` name two messages"));
        }
        Ok(Some(id.to_owned()))
    }))
}

/// Returns the text of a header that occurs at most once: visible ASCII without the characters that separate values.
fn only_line<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, KeyError> {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(KeyError::Repeated);
    }
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\",;\\".contains(byte);
    match line.to_str() {
        Ok(text) if line.as_bytes().iter().all(is_plain) => Ok(Some(text)),
        _ => Err(KeyError::malformed("the message's identifier has signs in it that no identifier has")),
    }
}

/// Creates the preset for PayPal's webhooks. The key is the JSON member `id` of the event (`WH-…`).
///
/// Success is any 2xx. After any other answer, PayPal sends again, up to 25 times over three days. The headers
/// `Paypal-Transmission-Id` and `Paypal-Transmission-Time` differ between deliveries; the event's `id` does not. The
/// signature covers a checksum (CRC-32) of the body, which does not protect against a body that is crafted to have the
/// same checksum. So compare what matters with PayPal's own API, or let PayPal verify
/// (`/v1/notifications/verify-webhook-signature`).
///
/// PayPal publishes no limit for the body; the [layer's own](crate::Policy::request_limit) applies.
///
/// Source: "Integrate webhooks", PayPal's REST documentation.
pub fn paypal() -> Preset {
    webhook(key::json("/id"))
}

/// Creates the preset for Square's webhooks. The key is the JSON member `event_id`.
///
/// Success is any 2xx within ten seconds. After any other answer, Square sends again, for up to 24 hours. The signature
/// (`X-Square-Hmacsha256-Signature`) covers the notification URL and the body, so it covers the identifier too.
///
/// Square publishes no limit for the body; the [layer's own](crate::Policy::request_limit) applies.
///
/// Source: "Manage webhook operations" and "Validate and process notifications", Square's documentation.
pub fn square() -> Preset {
    webhook(key::json("/event_id"))
}
