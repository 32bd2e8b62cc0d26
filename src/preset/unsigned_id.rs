//! Senders whose signature covers the body, but not the identifier in the head.

use super::Preset;
use super::callback::{bytes_of_the_body, webhook};
use crate::{IdempotencyLayer, key, scope};

const MIB: usize = 1024 * 1024;

/// Creates the preset for GitHub's webhooks. The key is the header `X-GitHub-Delivery`, within the webhook
/// `X-GitHub-Hook-ID`.
///
/// Success is any 2xx within 10 seconds. **GitHub does not send again by itself**: a delivery that is refused or fails
/// is lost, unless you redeliver it by hand or through the API within three days. If the store is unavailable, a
/// delivery receives 503; if the handler may run twice, [`fail_open`](IdempotencyLayer::fail_open) lets such deliveries
/// through. A redelivery has the same identifier. If you redeliver in order to run a successful delivery again, it is
/// answered as a duplicate.
///
/// Bodies are accepted up to 25 MB, which is GitHub's own limit. Axum's extractors have a limit of 2 MB, which
/// `DefaultBodyLimit` changes.
///
/// # What the signature does not cover
///
/// `X-Hub-Signature-256` covers the body only, not the identifier. So the bytes of the body are the fingerprint:
/// another body under a used identifier is refused (422 `key-reused`), and no event is lost without a trace. One gap
/// remains: a captured body with its signature runs again under a new identifier, or under the same one with another
/// `X-GitHub-Hook-ID` or none. [`github_webhook_by_body`] closes this gap.
///
/// Source: "Webhook events and payloads" and "Best practices for using webhooks", GitHub's documentation.
pub fn github_webhook() -> Preset {
    let delivery = webhook(key::header("X-GitHub-Delivery"));
    let hook = scope::from_key(key::header("X-GitHub-Hook-ID")).optional();
    Preset::new(move |layer| github(layer.preset(delivery.clone())).scope(hook.clone()))
}

/// Creates the preset for GitHub's webhooks by what the signature covers: the bytes of the body are the key.
///
/// A captured body cannot run again within the [retention](IdempotencyLayer::retention), whatever identifier it is sent
/// with. In return, two events with the same bytes count as one, and so do the deliveries of several webhooks for one
/// event; give each webhook a route of its own. Everything else is as with [`github_webhook`].
pub fn github_webhook_by_body() -> Preset {
    let delivery = webhook(key::content());
    Preset::new(move |layer| github(layer.preset(delivery.clone())))
}

fn github(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.fingerprint(bytes_of_the_body()).request_limit(25 * MIB)
}

/// Creates the preset for Shopify's webhooks. The key is the header `X-Shopify-Event-Id`, or `X-Shopify-Webhook-Id` if
/// there is none, together with the topic.
///
/// The names are accepted without `X-` too, as Shopify's newer deliveries have them. Success is any 2xx within 5
/// seconds. After any other answer, Shopify sends again, eight times in four hours. Shopify's documents name either
/// header, depending on their age; the first identifies the event, the second the delivery. One event can have several
/// topics, so the topic belongs to the key.
///
/// Shopify publishes no limit for deliveries over HTTPS, and bodies of several megabytes occur; they are accepted up to
/// 16 MiB. Axum's extractors have a limit of 2 MB, which `DefaultBodyLimit` changes.
///
/// # What the signature does not cover
///
/// `X-Shopify-Hmac-Sha256` covers the body only. So the bytes of the body are the fingerprint: another body under a
/// used identifier is refused (422 `key-reused`). Two gaps remain. A captured body with its signature runs again under
/// a new identifier or another topic; [`shopify_webhook_by_body`] closes this gap. Several apps, or several
/// subscriptions to one topic, share the event's identifier: give each a route of its own.
///
/// Source: "Ignore duplicate webhooks" and "Verify Events deliveries", Shopify's documentation.
pub fn shopify_webhook() -> Preset {
    let either = |name: &str| key::first([key::header(&format!("X-{name}")), key::header(name)]);
    let id = || key::first([either("Shopify-Event-Id"), either("Shopify-Webhook-Id")]);
    let delivery = webhook(key::first([key::all([id(), either("Shopify-Topic")]), id()]));
    Preset::new(move |layer| shopify(layer.preset(delivery.clone())))
}

/// Creates the preset for Shopify's webhooks by what the signature covers: the bytes of the body are the key.
///
/// A captured body cannot run again within the [retention](IdempotencyLayer::retention), whatever identifier or topic
/// it is sent with. In return, two events with the same bytes count as one, such as those of two topics; give each
/// topic a route of its own. Everything else is as with [`shopify_webhook`].
pub fn shopify_webhook_by_body() -> Preset {
    let delivery = webhook(key::content());
    Preset::new(move |layer| shopify(layer.preset(delivery.clone())))
}

fn shopify(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.fingerprint(bytes_of_the_body()).request_limit(16 * MIB)
}
