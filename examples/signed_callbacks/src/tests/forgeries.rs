//! Deliveries that are not genuine: each is refused in the sender's own word, and claims nothing.

use super::{
    senders::{Delivery, SENDERS, Sender, github, standard_webhooks, stripe, wechat_pay},
    test_shop::{TestShop, assert_done},
};

async fn assert_refused(shop: &TestShop, forged: &Delivery, case: &str) {
    let handled = shop.handled();
    let (status, headers, body) = shop.deliver(forged).await;
    assert_eq!(status, 401, "{case} of {}", forged.path);
    match forged.path {
        "/alipay" => assert_eq!(body, "fail", "{case}"),
        "/wechat-pay" => {
            let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                (&answer["code"], &headers["content-type"]),
                (&"FAIL".into(), &"application/json".parse().unwrap())
            );
        }
        _ => assert!(!body.is_empty(), "{case} of {}", forged.path),
    }
    assert_eq!(shop.handled(), handled, "{case} of {}", forged.path);
}

/// Changes the last digit or letter of a text.
fn bend(text: &mut [u8]) {
    let last = text.iter_mut().rev().find(|byte| byte.is_ascii_alphanumeric()).unwrap();
    *last = if *last == b'1' { b'2' } else { b'1' };
}

#[tokio::test]
async fn nobody_else_can_burn_an_identifier() {
    let shop = TestShop::new();
    for sender in SENDERS {
        let genuine = sender("event", 1, 0);
        let mut changed = genuine.clone();
        bend(&mut changed.body);
        assert_refused(&shop, &changed, "another body").await;
        let mut unsigned = genuine.clone();
        unsigned.fields.truncate(1);
        if genuine.path == "/alipay" {
            unsigned.body.truncate(unsigned.body.windows(6).position(|window| window == b"&sign=").unwrap());
        }
        if !matches!(genuine.path, "/standard") {
            assert_refused(&shop, &unsigned, "no signature").await;
        }
        let handled = shop.handled().len();
        assert_done(&shop.deliver(&genuine).await, genuine.path);
        if genuine.path != "/standard" && genuine.path != "/alipay" {
            assert_eq!(shop.handled().len(), handled + 1, "{}: the forgeries left nothing behind", genuine.path);
        }
        assert_refused(&shop, &changed, "another body, behind a genuine one").await;
    }
}

#[tokio::test]
async fn an_old_time_stamp_is_refused() {
    let shop = TestShop::new();
    for sender in [wechat_pay as Sender, stripe, standard_webhooks] {
        assert_refused(&shop, &sender("event", 1, 301), "six minutes ago").await;
        assert_done(&shop.deliver(&sender("event", 1, 290)).await, sender("event", 1, 0).path);
    }
}

#[tokio::test]
async fn a_signed_part_in_the_head_cannot_be_exchanged() {
    let shop = TestShop::new();
    for (sender, names) in [
        (wechat_pay as Sender, &["wechatpay-timestamp", "wechatpay-nonce", "wechatpay-serial"][..]),
        (standard_webhooks, &["webhook-id", "webhook-timestamp"]),
        (stripe, &["stripe-signature"]),
        (github, &["x-hub-signature-256"]),
    ] {
        for name in names {
            let mut forged = sender("event", 1, 0);
            let (_, value) = forged.fields.iter_mut().find(|(found, _)| found == name).unwrap();
            let mut bent = value.clone().into_bytes();
            match *name {
                // Not the last one, which does not count.
                "stripe-signature" => {
                    bent.iter_mut().filter(|byte| byte.is_ascii_hexdigit()).for_each(|byte| *byte = b'1');
                }
                _ => bend(&mut bent),
            }
            *value = String::from_utf8(bent).unwrap();
            assert_refused(&shop, &forged, name).await;
        }
    }
}

/// GitHub signs no identifier, so the shop's key is what it signs: the body.
#[tokio::test]
async fn a_captured_delivery_of_github_does_not_run_under_a_new_identifier() {
    let shop = TestShop::new();
    let genuine = github("event", 1, 0);
    assert_done(&shop.deliver(&genuine).await, genuine.path);
    let mut captured = genuine.clone();
    for (name, value) in &mut captured.fields {
        if matches!(*name, "x-github-delivery" | "x-github-hook-id") {
            value.push('9');
        }
    }
    assert_done(&shop.deliver(&captured).await, captured.path);
    assert_eq!(shop.handled().len(), 1);
}

/// A second identifier that no signature covers.
#[tokio::test]
async fn a_captured_message_does_not_run_under_a_second_identifier() {
    let shop = TestShop::new();
    let mut captured = standard_webhooks("event", 1, 0);
    assert_done(&shop.deliver(&captured).await, captured.path);
    captured.fields.push(("svix-id", "another".to_owned()));
    let (status, _, body) = shop.deliver(&captured).await;
    assert!(status == 400 && String::from_utf8_lossy(&body).contains("#key-invalid"), "{status} {body:?}");
    assert_eq!(shop.handled().len(), 1);
}
