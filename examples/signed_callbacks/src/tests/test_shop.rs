//! The shop with the secrets of the senders in these tests.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
};
use http_body_util::BodyExt;
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, MemoryStore};

use super::senders::{Delivery, GITHUB, PUBLIC_KEY, STANDARD, STRIPE, WECHAT_SERIAL, WECHAT_V3_KEY};
use crate::{
    rsa_sha256::PublicKey,
    shop::{Secrets, router},
};

/// The shop, and what it handled.
pub(crate) struct TestShop {
    app: Router,
    handled: Arc<Mutex<Vec<String>>>,
}

impl TestShop {
    pub(crate) fn new() -> Self {
        let public_key = || PublicKey::from_pem(PUBLIC_KEY).unwrap();
        let secrets = Secrets {
            alipay: public_key(),
            github: GITHUB.to_owned(),
            standard_webhooks: STANDARD.to_owned(),
            stripe: STRIPE.to_owned(),
            wechat_pay: [(WECHAT_SERIAL.to_owned(), public_key())].into(),
            wechat_pay_v3_key: *WECHAT_V3_KEY,
        };
        let handled = Arc::<Mutex<Vec<_>>>::default();
        let told = handled.clone();
        let handle = move |sender: &str, what: &[u8]| {
            told.lock().unwrap().push(format!("{sender}: {}", String::from_utf8_lossy(what)));
        };
        let base = IdempotencyLayer::new(MemoryStore::new());
        Self { app: router(&base, secrets, Box::new(handle)), handled }
    }

    pub(crate) async fn deliver(&self, delivery: &Delivery) -> (StatusCode, HeaderMap, Bytes) {
        let answer = self.app.clone().oneshot(delivery.request()).await.unwrap();
        let (head, body) = answer.into_parts();
        (head.status, head.headers, body.collect().await.unwrap().to_bytes())
    }

    /// What was handled, in order.
    pub(crate) fn handled(&self) -> Vec<String> {
        self.handled.lock().unwrap().clone()
    }
}

/// What each sender reads as success.
pub(crate) fn assert_done((status, _, body): &(StatusCode, HeaderMap, Bytes), path: &str) {
    let expected = match path {
        "/alipay" => (200, "success"),
        "/wechat-pay" => (204, ""),
        _ => (200, ""),
    };
    assert_eq!((status.as_u16(), &body[..]), (expected.0, expected.1.as_bytes()), "{path}");
}
