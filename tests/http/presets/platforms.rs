//! What each platform sends, and what it reads.

use tower_idempotency::preset::{self, Preset};

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
const XML: &str = "text/xml";
const JSON: &str = "application/json";

/// What a platform sends, and what it reads.
pub(crate) struct Platform {
    pub(crate) name: &'static str,
    pub(crate) preset: fn() -> Preset,
    pub(crate) content_type: &'static str,
    /// `ID` stands for the identifier, `TRY` for what differs from one delivery to the next.
    pub(crate) headers: Headers,
    pub(crate) body: &'static str,
    pub(crate) key: fn(&str) -> String,
    pub(crate) scope: &'static str,
    pub(crate) done: (u16, Option<&'static str>, &'static str),
    pub(crate) again: (u16, &'static str),
    /// Deliveries without an identifier, or with one that is not valid: headers, body and the problem's name.
    pub(crate) bad: &'static [(Headers, &'static str, &'static str)],
}

pub(crate) type Headers = &'static [(&'static str, &'static str)];

fn itself(id: &str) -> String {
    id.to_owned()
}

pub(crate) const PLATFORMS: &[Platform] = &[
    Platform {
        name: "alipay",
        preset: preset::alipay,
        content_type: FORM,
        headers: &[],
        body: "notify_time=2026-01-01+10%3A0TRY%3A00&notify_type=trade_status_sync&notify_id=ID&app_id=2021000000000000\
               &charset=utf-8&version=1.0&sign_type=RSA2&sign=c2lnblRSWQ%3D%3DTRY&trade_no=2026010122001400000000000001\
               &out_trade_no=70501111111S001111119&seller_id=2088000000000000&trade_status=TRADE_SUCCESS\
               &total_amount=88.00&receipt_amount=88.00&subject=%E8%AE%A2%E5%8D%95&gmt_payment=2026-01-01+09%3A59%3A58",
        key: itself,
        scope: "",
        done: (200, Some("text/plain"), "success"),
        again: (503, "fail"),
        bad: &[
            (&[], "out_trade_no=7&trade_status=TRADE_SUCCESS", "key-missing"),
            (&[], "notify_id=&out_trade_no=7", "key-invalid"),
            (&[], "notify_id=a&notify_id=b", "key-invalid"),
            (&[], "notify_id=%ff", "key-invalid"),
            (&[], "notify_id=a%00b", "key-invalid"),
        ],
    },
    Platform {
        name: "alipay by order",
        preset: preset::alipay_by_order,
        content_type: FORM,
        headers: &[],
        body: "notify_id=another-TRY&out_trade_no=ID&trade_status=TRADE_SUCCESS&total_amount=88.00",
        key: |id| format!("{}:{id},13:TRADE_SUCCESS,", id.len()),
        scope: "",
        done: (200, Some("text/plain"), "success"),
        again: (503, "fail"),
        bad: &[(&[], "notify_id=7&trade_status=TRADE_SUCCESS", "key-missing"), (&[], "out_trade_no=7", "key-missing")],
    },
    Platform {
        name: "wechat pay v2",
        preset: preset::wechat_pay_v2,
        content_type: XML,
        headers: &[],
        body: "<xml>\n  <appid><![CDATA[wx0000000000000000]]></appid>\n  <bank_type><![CDATA[CFT]]></bank_type>\n  \
               <mch_id><![CDATA[10000100]]></mch_id>\n  <nonce_str><![CDATA[nonceTRY]]></nonce_str>\n  \
               <out_trade_no><![CDATA[ID]]></out_trade_no>\n  <result_code><![CDATA[SUCCESS]]></result_code>\n  \
               <return_code><![CDATA[SUCCESS]]></return_code>\n  <sign><![CDATA[SIGNTRY]]></sign>\n  \
               <total_fee>1</total_fee>\n  <transaction_id><![CDATA[4200000000202601010000000000]]></transaction_id>\n</xml>",
        key: itself,
        scope: "10000100",
        done: (
            200,
            Some("text/xml"),
            "<xml><return_code><![CDATA[SUCCESS]]></return_code><return_msg><![CDATA[OK]]></return_msg></xml>",
        ),
        again: (503, "<return_code><![CDATA[FAIL]]></return_code>"),
        bad: &[
            (&[], "<xml><mch_id>1</mch_id></xml>", "key-missing"),
            (&[], "<xml><out_trade_no>7</out_trade_no></xml>", "scope-missing"),
            (&[], "<xml><mch_id> </mch_id><out_trade_no>7</out_trade_no></xml>", "scope-missing"),
            (&[], "<xml><mch_id>1</mch_id><mch_id>2</mch_id><out_trade_no>7</out_trade_no></xml>", "scope-invalid"),
            (&[], "<xml><mch_id>1</mch_id><out_trade_no>7</xml>", "key-invalid"),
            (
                &[],
                "<!DOCTYPE xml [<!ENTITY e \"7\">]><xml><mch_id>1</mch_id><out_trade_no>&e;</out_trade_no></xml>",
                "key-invalid",
            ),
            (&[], "out_trade_no=7", "key-invalid"),
        ],
    },
    Platform {
        name: "wechat pay v3",
        preset: preset::wechat_pay_v3,
        content_type: JSON,
        headers: &[
            ("Wechatpay-Timestamp", "17672TRY"),
            ("Wechatpay-Nonce", "nonceTRY"),
            ("Wechatpay-Signature", "sTRY"),
        ],
        body: r#"{"id":"ID","create_time":"2026-01-01T10:0TRY:00+08:00","resource_type":"encrypt-resource","event_type":"TRANSACTION.SUCCESS","summary":"ok","resource":{"original_type":"transaction","algorithm":"AEAD_AES_256_GCM","ciphertext":"cipherTRY","associated_data":"transaction","nonce":"nTRY"}}"#,
        key: itself,
        scope: "",
        done: (204, None, ""),
        again: (503, r#""code":"FAIL""#),
        bad: &[
            (&[], r#"{"event_type":"TRANSACTION.SUCCESS"}"#, "key-missing"),
            (&[], r#"{"id":{"a":1}}"#, "key-invalid"),
            (&[], r#"{"id":null}"#, "key-invalid"),
            (&[], r#"{"id":"a","id":"b"}"#, "key-invalid"),
            (&[], "{not json", "key-invalid"),
        ],
    },
    Platform {
        name: "stripe",
        preset: preset::stripe_webhook,
        content_type: "application/json; charset=utf-8",
        headers: &[("Stripe-Signature", "t=176723TRY,v1=00TRY")],
        body: r#"{"id":"ID","object":"event","api_version":"2025-01-01","created":1767261600,"data":{"object":{"id":"pi_00","object":"payment_intent","amount":100}},"livemode":false,"pending_webhooks":TRY,"type":"payment_intent.succeeded"}"#,
        key: itself,
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[
            (&[], r#"{"object":"event"}"#, "key-missing"),
            (&[], r#"{"id":1.5}"#, "key-invalid"),
            (&[], "", "key-invalid"),
        ],
    },
    Platform {
        name: "github",
        preset: preset::github_webhook,
        content_type: JSON,
        headers: &[("X-GitHub-Delivery", "ID"), ("X-GitHub-Event", "push"), ("X-Hub-Signature-256", "sha256=00")],
        body: r#"{"ref":"refs/heads/main"}"#,
        key: itself,
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[(&[], "{}", "key-missing"), (&[("X-GitHub-Delivery", "a b")], "{}", "key-invalid")],
    },
    Platform {
        name: "standard webhooks",
        preset: preset::standard_webhooks,
        content_type: JSON,
        headers: &[
            ("webhook-id", "msg_ID"),
            ("webhook-timestamp", "176723TRY"),
            ("webhook-signature", "v1,TRY v1a,TRY"),
        ],
        body: r#"{"type":"contact.created","timestamp":"2026-01-01T00:0TRY:00Z","data":{}}"#,
        key: |id| format!("msg_{id}"),
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[(&[], "{}", "key-missing"), (&[("webhook-id", "a,b")], "{}", "key-invalid")],
    },
    Platform {
        name: "shopify",
        preset: preset::shopify_webhook,
        content_type: JSON,
        headers: &[
            ("X-Shopify-Event-Id", "ID"),
            ("X-Shopify-Webhook-Id", "delivery-TRY"),
            ("X-Shopify-Hmac-Sha256", "00"),
        ],
        body: r#"{"id":820982911946154508}"#,
        key: itself,
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[(&[], "{}", "key-missing"), (&[("X-Shopify-Event-Id", ";")], "{}", "key-invalid")],
    },
    Platform {
        name: "shopify of old",
        preset: preset::shopify_webhook,
        content_type: JSON,
        headers: &[("X-Shopify-Webhook-Id", "ID")],
        body: r#"{"id":820982911946154508}"#,
        key: itself,
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[],
    },
    Platform {
        name: "svix",
        preset: preset::standard_webhooks,
        content_type: JSON,
        headers: &[("svix-id", "msg_ID"), ("svix-timestamp", "176723TRY"), ("svix-signature", "v1,TRY")],
        body: r#"{"type":"contact.created","timestamp":"2026-01-01T00:0TRY:00Z","data":{}}"#,
        key: |id| format!("msg_{id}"),
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[
            (&[("svix-id", "msg_1"), ("webhook-id", "msg_2")], "{}", "key-invalid"),
            (&[("svix-id", "msg_1"), ("svix-id", "msg_1")], "{}", "key-invalid"),
            (&[("svix-id", "a b")], "{}", "key-invalid"),
            (&[("svix-id", "")], "{}", "key-invalid"),
        ],
    },
    Platform {
        name: "shopify, newer names",
        preset: preset::shopify_webhook,
        content_type: JSON,
        headers: &[("Shopify-Webhook-Id", "ID"), ("Shopify-Topic", "orders/create"), ("Shopify-Hmac-Sha256", "00")],
        body: r#"{"id":820982911946154508}"#,
        key: |id| format!("{}:{id},13:orders/create,", id.len()),
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[(&[("Shopify-Topic", "orders/create")], "{}", "key-missing")],
    },
    Platform {
        name: "paypal",
        preset: preset::paypal,
        content_type: JSON,
        headers: &[
            ("Paypal-Transmission-Id", "d938e770-TRY"),
            ("Paypal-Transmission-Time", "2026-01-01T00:0TRY:00Z"),
            ("Paypal-Transmission-Sig", "TRY"),
            ("Paypal-Auth-Algo", "SHA256withRSA"),
        ],
        body: r#"{"id":"WH-ID","event_version":"1.0","create_time":"2026-01-01T00:00:00Z","resource_type":"capture","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"42311647XV020574X","amount":{"currency_code":"USD","value":"21.00"}}}"#,
        key: |id| format!("WH-{id}"),
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[(&[], r#"{"event_version":"1.0"}"#, "key-missing"), (&[], "[]", "key-missing")],
    },
    Platform {
        name: "square",
        preset: preset::square,
        content_type: JSON,
        headers: &[("X-Square-Hmacsha256-Signature", "00"), ("Square-Retry-Number", "TRY")],
        body: r#"{"merchant_id":"6SSW7HV8K2ST5","type":"payment.created","event_id":"ID","created_at":"2026-01-01T00:00:00Z","data":{"type":"payment","id":"hYy9pRFVxpDsO1FB05SunFWUe9JZY"}}"#,
        key: itself,
        scope: "",
        done: (200, None, ""),
        again: (503, ""),
        bad: &[(&[], r#"{"id":"7"}"#, "key-missing")],
    },
    Platform {
        name: "adyen",
        preset: preset::adyen,
        content_type: JSON,
        headers: &[],
        body: r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"TRY"},"amount":{"currency":"EUR","value":1000},"eventCode":"AUTHORISATION","eventDate":"2026-01-01T00:0TRY:00+01:00","merchantAccountCode":"Shop","merchantReference":"order 7","pspReference":"ID","success":"true"}}]}"#,
        key: |id| format!("{}:{id},13:AUTHORISATION,4:true,", id.len()),
        scope: "",
        done: (200, Some("text/plain"), "[accepted]"),
        again: (503, ""),
        bad: &[(&[], r#"{"live":"false","notificationItems":[]}"#, "key-missing")],
    },
];

pub(crate) fn named(name: &str) -> &'static Platform {
    PLATFORMS.iter().find(|platform| platform.name == name).unwrap()
}
