//! Signatures that this crate's own code has no part in: examples that the platforms publish, and deliveries that their
//! libraries signed or accept, made once. Each is good, and none is if a part of it changes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName};

use super::senders::{PUBLIC_KEY, STANDARD, STRIPE, WECHAT_SERIAL, WECHAT_V3_KEY};
use crate::{
    alipay, github,
    rsa_sha256::PublicKey,
    standard_webhooks, stripe,
    wechat_pay_v3::{self, Notification, PlatformKeys},
};

type Verified = Result<(), &'static str>;

/// The time stamp of what the libraries made: 2026-01-01 10:00:00 UTC.
const STAMP: u64 = 1_767_261_600;

fn at(stamp: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(stamp)
}

fn headers<const N: usize>(fields: [(&'static str, &str); N]) -> HeaderMap {
    fields.into_iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
}

/// `verify` accepts the delivery at its time, and neither another body nor, where there is a time stamp, another time.
fn assert_genuine(verify: impl Fn(&[u8], SystemTime) -> Verified, body: &str, stamp: Option<u64>) {
    let now = at(stamp.unwrap_or(STAMP));
    assert_eq!(verify(body.as_bytes(), now), Ok(()));
    assert!(verify(body.replacen(':', ": ", 1).replacen("88.00", "88.01", 1).as_bytes(), now).is_err());
    let limit = Duration::from_secs(300);
    for (time, good) in [(now + limit, true), (now + limit * 2, false), (now - limit * 2, false)] {
        assert_eq!(verify(body.as_bytes(), time).is_ok(), good || stamp.is_none());
    }
}

#[test]
fn by_github() {
    // "Validating webhook deliveries".
    let mut headers = HeaderMap::new();
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    headers.insert("x-hub-signature-256", signature.parse().unwrap());
    let secret = "It's a Secret to Everybody";
    assert_eq!(github::verify(secret, &headers, b"Hello, World!"), Ok(()));
    assert!(github::verify(secret, &headers, b"Hello, World?").is_err());
    headers.insert("x-hub-signature-256", signature.replace("757", "+75").parse().unwrap());
    assert!(github::verify(secret, &headers, b"Hello, World!").is_err());
}

#[test]
fn by_svix() {
    // "Verifying webhooks manually", and `Webhook.sign` of the libraries svix 2.5.0 and standardwebhooks 1.1.1 for
    // JavaScript, which agree.
    for prefix in ["svix", "webhook"] {
        for (id, stamp, signature, body) in [
            (
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
                r#"{"test": 2432232314}"#,
            ),
            (
                "msg_1",
                STAMP,
                "v1,KnLl14rwKG7QYA+QgaSD4zRSt/dVdA6cbx7+J+IAs6Y=",
                r#"{"type":"contact.created","data":{"name":"Zoë"}}"#,
            ),
        ] {
            let names = match prefix {
                "svix" => ["svix-id", "svix-timestamp", "svix-signature"],
                _ => ["webhook-id", "webhook-timestamp", "webhook-signature"],
            };
            let headers = headers([(names[0], id), (names[1], &stamp.to_string()), (names[2], signature)]);
            let verify = |body: &[u8], now| standard_webhooks::verify(STANDARD, &headers, body, now);
            assert_genuine(verify, body, Some(stamp));
        }
    }
}

#[test]
fn by_stripe() {
    // `webhooks.generateTestHeaderString` of stripe 23.1.0 for Node.js.
    let body = r#"{"id":"evt_1","object":"event","type":"payment_intent.succeeded"}"#;
    let headers = headers([(
        "stripe-signature",
        "t=1767261600,v1=c2b101b920c47dbeafcc2a2e723f6de29431e09213079292c35e4c33af7f388d",
    )]);
    assert_genuine(|body, now| stripe::verify(STRIPE, &headers, body, now), body, Some(STAMP));
}

#[test]
fn by_alipay() {
    // Signed by OpenSSL 3 through Node.js 20; `checkNotifySignV2` of alipay-sdk 4.14.0 accepts it.
    let body = "notify_time=2026-01-01+10%3A00%3A00&notify_id=7f0c&charset=utf-8&trade_status=TRADE_SUCCESS&total_am\
    ount=88.00&subject=%E8%AE%A2%E5%8D%95+7%2B1+%26+50%25&fund_bill_list=%5B%7B%22amount%22%3A%2288.00%2\
    2%2C%22fundChannel%22%3A%22ALIPAYACCOUNT%22%7D%5D&sign_type=RSA2&sign=GISiDI1QclU4CVWoj2oX8lkS3ztINg\
    JGEHa4Pqh2A8Usde%2FjbpLbZbAvfPVIcmwmTcQDLNyPGbQXVJkVjDohkGWLp5aJeqZ2wwxo9POfC%2BLljHRzyJ3PWNviLkZH4Z\
    3FWsVdYhZj7B55XoiHwGlDghh8pTx5PXQWzRdmMvKqfWav2cMy91KjD2erxEBSFkNFXZyXpMFT03O7r%2BpB%2BEDqmgEr%2BjLF\
    ZMjHcmmgyt%2BJQr%2Bu5d2hO2H9oh9jyvW8oI8Sr4OQthGdoC6fGcL3zFHVcBL6Tbp3SneVwr9MgP1zGec3dKtUf8By9KNwLhU4\
    KZDG3Ie6BfzCx1%2BmTTNQ2X374w%3D%3D";
    let key = PublicKey::from_pem(PUBLIC_KEY).unwrap();
    assert_genuine(|body, _| alipay::verify(&key, body), body, None);
}

#[test]
fn by_wechat_pay() {
    // Signed and encrypted by cryptography 50.0.2 for Python; `callback` of wechatpayv3 2.0.4 accepts and decrypts it.
    let body = r#"{"id":"EV-2018022511223320873","event_type":"TRANSACTION.SUCCESS","resource_type":"encrypt-resource","summary":"支付成功","resource":{"original_type":"transaction","algorithm":"AEAD_AES_256_GCM","ciphertext":"DUcclrHBE5NffFMk6pzEyhVt30XyhZ3BWFZ0YWAkur/6MFUot+MaXPmxKZ6O3eRUH+jzqEJ91kektsCeZ5fDFsEiAdryOWQbKtc9T5bjntYfTdZQ","associated_data":"transaction","nonce":"fdasflkja484"}}"#;
    let headers = headers([
        ("wechatpay-serial", WECHAT_SERIAL),
        ("wechatpay-timestamp", "1767261600"),
        ("wechatpay-nonce", "593BEC0C930BF1AFEB40B4A08C8FB242"),
        (
            "wechatpay-signature",
            "VG9i/ZyFTjBjEvHWyM4smefkgWTxQVhItJOZvvHliypPcGQA7Ck3MZHjdo9VszvuLNFsg1CTOgHFbcHJw3erZjbKpZ\
             Oo0j4PiuULX3Gc9WXOUFHhzvYS18QdEDNZJVcJoxU/eja3nfsIVSCfSSsvSA7EV5CaB0KYEZznojzgqnn+2XDDP0fh\
             a24HnDOgm/35hWzH/z8+6tcXbb62O6gSDUxWeKc7L1Ft0Jvjn0UxQ5lxqSOEYF7ZLYmNHieummIhsfw0CwEpnO/Zg7\
             c4xUl834lWqdKNh7JTNl7WpwcTOxRCD9dBEZz7UosYVUuiT/t5nJue9lKeYGFpaEl88B1POA==",
        ),
    ]);
    let keys: PlatformKeys = [(WECHAT_SERIAL.to_owned(), PublicKey::from_pem(PUBLIC_KEY).unwrap())].into();
    assert_genuine(|body, now| wechat_pay_v3::verify(&keys, &headers, body, now), body, Some(STAMP));
    let notification: Notification = serde_json::from_str(body).unwrap();
    let order = notification.decrypt(WECHAT_V3_KEY).unwrap();
    assert_eq!(order, br#"{"out_trade_no":"7","trade_state":"SUCCESS","amount":{"total":8800}}"#);
}
