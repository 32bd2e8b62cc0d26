//! Each preset, with notifications of the platform's shape and made-up values.

use std::{sync::Arc, time::Duration};

use crate::common::Counter;
use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::post,
};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, Preset, preset};

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
const XML: &str = "text/xml";
const JSON: &str = "application/json";

/// What a platform sends, and what it reads.
struct Platform {
    name: &'static str,
    preset: fn() -> Preset,
    content_type: &'static str,
    /// `ID` stands for the identifier, `TRY` for what differs from one delivery to the next.
    headers: Headers,
    body: &'static str,
    key: fn(&str) -> String,
    scope: &'static str,
    done: (u16, Option<&'static str>, &'static str),
    again: (u16, &'static str),
    /// Deliveries without an identifier, or with one that is none: headers, body and the problem's name.
    bad: &'static [(Headers, &'static str, &'static str)],
}

type Headers = &'static [(&'static str, &'static str)];

fn itself(id: &str) -> String {
    id.to_owned()
}

const PLATFORMS: &[Platform] = &[
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
        headers: &[("X-GitHub-Delivery", "ID"), ("X-GitHub-Event", "push"), ("X-Hub-Signature-256", "sha256=TRY")],
        body: r#"{"ref":"refs/heads/main","try":TRY}"#,
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
            ("X-Shopify-Hmac-Sha256", "TRY"),
        ],
        body: r#"{"id":820982911946154508,"try":TRY}"#,
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
];

/// A route with the preset, whose handler is told what to do from outside.
struct Route {
    platform: &'static Platform,
    app: Router,
    runs: Counter,
    /// The handler takes one for each run.
    go: Arc<Semaphore>,
}

impl Route {
    fn new(platform: &'static Platform) -> Self {
        let runs = Counter::default();
        let go = Arc::new(Semaphore::new(0));
        let handler = {
            let (runs, go) = (runs.clone(), go.clone());
            move |operation: Operation, request: Request| async move {
                let run = runs.next();
                go.acquire().await.unwrap().forget();
                let status = request.headers()["x-status"].to_str().unwrap().parse::<u16>().unwrap();
                let body = request.headers()["x-body"].to_str().unwrap().to_owned();
                let seen = request.into_body().collect().await.unwrap().to_bytes();
                assert!(!seen.is_empty() || platform.body.is_empty(), "{}", platform.name);
                (
                    StatusCode::from_u16(status).unwrap(),
                    [
                        ("x-run", run.to_string()),
                        ("x-key", operation.key().to_owned()),
                        ("x-scope", operation.scope().unwrap_or_default().to_owned()),
                    ],
                    body,
                )
                    .into_response()
            }
        };
        let layer = IdempotencyLayer::new(MemoryStore::new()).preset((platform.preset)());
        Self { platform, app: Router::new().route("/hook", post(handler).layer(layer)), runs, go }
    }

    async fn send(&self, headers: &[(&str, String)], body: String, answer: (u16, &str)) -> Response {
        let mut request = Request::post("/hook")
            .header("Content-Type", self.platform.content_type)
            .header("X-Status", answer.0)
            .header("X-Body", answer.1);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        self.app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
    }

    async fn deliver(&self, id: &str, delivery: u8, answer: (u16, &str)) -> Response {
        let fill = |text: &str| text.replace("ID", id).replace("TRY", &delivery.to_string());
        let headers: Vec<_> = self.platform.headers.iter().map(|(name, value)| (*name, fill(value))).collect();
        self.send(&headers, fill(self.platform.body), answer).await
    }

    async fn assert_done(&self, answer: Response) {
        let (status, content_type, body) = self.platform.done;
        let name = self.platform.name;
        assert_eq!(answer.status(), status, "{name}");
        let found = answer.headers().get("content-type").map(|value| value.to_str().unwrap());
        assert_eq!(found.and_then(|found| found.split(';').next()), content_type, "{name}");
        assert!(!answer.headers().contains_key("x-run"), "{name}: the handler's own");
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), body, "{name}");
    }

    async fn assert_again(&self, answer: Response) {
        let (status, part) = self.platform.again;
        let name = self.platform.name;
        assert_eq!(answer.status(), status, "{name}");
        assert!(answer.headers().contains_key(RETRY_AFTER), "{name}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(part), "{name}: {body:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn first_delivery_redelivery_and_another() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        route.go.add_permits(2);
        let first = route.deliver("4f2c9", 1, (200, "done")).await;
        assert_eq!(first.headers()["x-key"].to_str().unwrap(), (platform.key)("4f2c9"), "{}", platform.name);
        assert_eq!(first.headers()["x-scope"], platform.scope, "{}", platform.name);
        tokio::time::advance(Duration::from_secs(6 * 24 * 60 * 60)).await;
        route.assert_done(route.deliver("4f2c9", 2, (200, "done")).await).await;
        let other = route.deliver("5a1d0", 1, (200, "done")).await;
        assert_eq!(other.headers()["x-run"], "2", "{}", platform.name);
        assert_eq!(route.runs.get(), 2, "{}", platform.name);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_delivery() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        let (first, ()) = tokio::join!(route.deliver("4f2c9", 1, (204, "")), async {
            route.assert_again(route.deliver("4f2c9", 2, (204, "")).await).await;
            route.go.add_permits(1);
        });
        assert_eq!((first.status().as_u16(), route.runs.get()), (204, 1), "{}", platform.name);
        route.assert_done(route.deliver("4f2c9", 3, (204, "")).await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn failing_handler() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        route.go.add_permits(10);
        for (delivery, status) in [(1, 500), (2, 400), (3, 503)] {
            assert_eq!(route.deliver("4f2c9", delivery, (status, "")).await.status(), status, "{}", platform.name);
        }
        assert_eq!(route.deliver("4f2c9", 4, (200, "done")).await.headers()["x-run"], "4", "{}", platform.name);
        route.assert_done(route.deliver("4f2c9", 5, (200, "done")).await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_word_of_failure_is_a_failure() {
    let failures = [
        ("alipay", &["fail", "FAILURE", " fail\t"][..]),
        (
            "wechat pay v2",
            &["<xml><return_code><![CDATA[FAIL]]></return_code></xml>", "<xml> <return_code>FAIL</return_code></xml>"],
        ),
    ];
    for (name, words) in failures {
        let route = Route::new(PLATFORMS.iter().find(|platform| platform.name == name).unwrap());
        route.go.add_permits(10);
        for word in words {
            route.deliver("4f2c9", 1, (200, word)).await;
        }
        assert_eq!(route.runs.get(), words.len(), "{name}");
        route.deliver("4f2c9", 1, (200, route.platform.done.2)).await;
        route.assert_done(route.deliver("4f2c9", 2, (200, "")).await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn missing_and_malformed_identifiers() {
    for platform in PLATFORMS {
        let route = Route::new(platform);
        for (headers, body, problem) in platform.bad {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            let answer = crate::common::see(route.send(&headers, (*body).to_owned(), (200, "")).await).await;
            assert_eq!(
                (answer.status, &*answer.problem()),
                (StatusCode::BAD_REQUEST, *problem),
                "{}: {body}",
                platform.name
            );
        }
        assert_eq!(route.runs.get(), 0, "{}", platform.name);
    }
}

#[tokio::test(start_paused = true)]
async fn merchants_of_wechat_are_kept_apart() {
    let route = Route::new(PLATFORMS.iter().find(|platform| platform.name == "wechat pay v2").unwrap());
    route.go.add_permits(2);
    let order = |merchant: &str| format!("<xml><mch_id>{merchant}</mch_id><out_trade_no>7</out_trade_no></xml>");
    for (merchant, runs) in [("100", 1), ("200", 2), ("100", 2), ("200", 2)] {
        route.send(&[], order(merchant), (200, "")).await;
        assert_eq!(route.runs.get(), runs, "{merchant}");
    }
}

#[tokio::test(start_paused = true)]
async fn apis_of_ones_own() {
    let request = |key: &str, body: &str| {
        Request::post("/").header("Idempotency-Key", key).body(Body::from(body.to_owned())).unwrap()
    };
    for (preset, first, same, bare) in [
        (preset::stripe_api as fn() -> Preset, "abc", "\"abc\"", None),
        (preset::ietf_draft, "\"abc\"", "\"abc\";v=1", Some("abc")),
    ] {
        let runs = Counter::default();
        let handler = {
            let runs = runs.clone();
            move || async move { (StatusCode::INTERNAL_SERVER_ERROR, runs.next().to_string()) }
        };
        let layer = IdempotencyLayer::new(MemoryStore::new()).preset(preset());
        let app: Router = Router::new().route("/", post(handler).layer(layer));
        let ask = async |key, body| crate::common::see(app.clone().oneshot(request(key, body)).await.unwrap()).await;
        assert_eq!(ask(first, "").await, crate::common::Seen::first(500, "1"));
        assert_eq!(ask(same, "").await, crate::common::Seen::replay(500, "1"));
        assert_eq!(ask(same, "x").await.problem(), "key-reused");
        if let Some(bare) = bare {
            assert_eq!(ask(bare, "").await.problem(), "key-invalid");
        }
        assert_eq!(runs.get(), 1);
    }
}
