//! A shop that receives the callbacks of five senders: each verified before it is claimed, and handled once.

use std::{future::ready, sync::Arc, time::SystemTime};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{Response, StatusCode},
    routing::post,
};
use serde_json::json;
use tower_idempotency::{IdempotencyLayer, preset};

use super::{
    alipay,
    answers::{refused, unauthorized},
    github,
    rsa_sha256::PublicKey,
    standard_webhooks, stripe,
    wechat_pay_v3::{self, Notification, PlatformKeys},
};

/// What the shop knows of its senders. A real one reads it from where its secrets are.
pub(crate) struct Secrets {
    pub(crate) alipay: PublicKey,
    pub(crate) github: String,
    pub(crate) standard_webhooks: String,
    pub(crate) stripe: String,
    pub(crate) wechat_pay: PlatformKeys,
    pub(crate) wechat_pay_v3_key: [u8; 32],
}

/// What the shop does with a callback that is genuine: here, it is given the event.
pub(crate) type Handle = dyn Fn(&str, &[u8]) + Send + Sync;

struct Shop {
    handle: Box<Handle>,
    wechat_pay_v3_key: [u8; 32],
}

pub(crate) fn router(base: &IdempotencyLayer, secrets: Secrets, handle: Box<Handle>) -> Router {
    let Secrets { alipay: alipay_key, github, standard_webhooks, stripe, wechat_pay, wechat_pay_v3_key } = secrets;
    let base = || base.clone();
    let alipay = base()
        .preset(preset::alipay())
        .verify(move |_, body| ready(alipay::verify(&alipay_key, &body).map_err(refused_by_alipay)));
    let wechat_pay = base().preset(preset::wechat_pay_v3()).verify(move |head, body| {
        let verified = wechat_pay_v3::verify(&wechat_pay, &head.headers, &body, SystemTime::now());
        ready(verified.map_err(refused_by_wechat_pay))
    });
    let stripe = base().preset(preset::stripe_webhook()).verify(move |head, body| {
        ready(stripe::verify(&stripe, &head.headers, &body, SystemTime::now()).map_err(unauthorized))
    });
    let github = base()
        .preset(preset::github_webhook_by_body())
        .verify(move |head, body| ready(github::verify(&github, &head.headers, &body).map_err(unauthorized)));
    let standard = base().preset(preset::standard_webhooks()).verify(move |head, body| {
        let verified = standard_webhooks::verify(&standard_webhooks, &head.headers, &body, SystemTime::now());
        ready(verified.map_err(unauthorized))
    });
    // GitHub sends up to 25 MB, and Axum's own limit is 2 MB.
    let large = Router::new().route("/github", post(event).layer(github)).layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/alipay", post(paid_by_alipay).layer(alipay))
        .route("/wechat-pay", post(paid_by_wechat_pay).layer(wechat_pay))
        .route("/stripe", post(event).layer(stripe))
        .merge(large)
        .route("/standard", post(event).layer(standard))
        .with_state(Arc::new(Shop { handle, wechat_pay_v3_key }))
}

/// Alipay reads the word, whatever the status is.
fn refused_by_alipay(_: &str) -> Response<Bytes> {
    refused("text/plain; charset=utf-8", "fail".to_owned())
}

fn refused_by_wechat_pay(reason: &str) -> Response<Bytes> {
    refused("application/json", json!({ "code": "FAIL", "message": reason }).to_string())
}

/// A real shop checks `app_id`, `seller_id`, the order number and the amount here.
async fn paid_by_alipay(State(shop): State<Arc<Shop>>, body: Bytes) -> &'static str {
    (shop.handle)("alipay", &body);
    "success"
}

async fn paid_by_wechat_pay(State(shop): State<Arc<Shop>>, body: Bytes) -> Result<StatusCode, Response<String>> {
    let notification: Option<Notification> = serde_json::from_slice(&body).ok();
    let order = notification
        .and_then(|it| it.decrypt(&shop.wechat_pay_v3_key).filter(|_| it.event_type == "TRANSACTION.SUCCESS"));
    let Some(order) = order else {
        let mut failed = Response::new(json!({ "code": "FAIL", "message": "not decrypted" }).to_string());
        *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return Err(failed);
    };
    (shop.handle)("wechat pay", &order);
    Ok(StatusCode::NO_CONTENT)
}

async fn event(State(shop): State<Arc<Shop>>, body: Bytes) {
    (shop.handle)("event", &body);
}
