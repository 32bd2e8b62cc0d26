//! The platforms: each signs a delivery as its own document says.

use std::{
    fmt::Write,
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use aes_gcm::{
    Aes256Gcm, KeyInit,
    aead::{Aead, Payload},
};
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, Mac};
use rsa::{
    PrivateKey,
    pkcs1v15::SigningKey,
    pkcs8::DecodePrivateKey,
    sha2::Sha256,
    signature::{SignatureEncoding, Signer},
};
use serde_json::json;

pub(crate) const GITHUB: &str = "It's a Secret to Everybody";
pub(crate) const STRIPE: &str = "whsec_0123456789abcdef";
pub(crate) const STANDARD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const WECHAT_V3_KEY: &[u8; 32] = b"0123456789abcdef0123456789abcdef";
pub(crate) const WECHAT_SERIAL: &str = "PUB_KEY_ID_0000000000000000000000000001";
pub(crate) const PUBLIC_KEY: &str = include_str!("public_key.pem");

static KEY: LazyLock<SigningKey<Sha256>> =
    LazyLock::new(|| SigningKey::new(PrivateKey::from_pkcs8_pem(include_str!("private_key.pem")).unwrap()));

/// A request before it is sent, for those who change it.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) path: &'static str,
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Delivery {
    fn new(path: &'static str, content_type: &'static str, body: Vec<u8>) -> Self {
        Self { path, fields: vec![("content-type", content_type.to_owned())], body }
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.fields.push((name, value));
        self
    }

    pub(crate) fn request(&self) -> Request {
        let mut request = Request::post(self.path).body(Body::from(self.body.clone())).unwrap();
        for (name, value) in &self.fields {
            request.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        request
    }
}

/// A sender, and what it says to its own event `id` for the n-th time, so many seconds ago.
pub(crate) type Sender = fn(id: &str, delivery: u8, ago: u64) -> Delivery;

/// Their paths stand for their names.
pub(crate) const SENDERS: &[Sender] = &[alipay, alipay_in_gbk, wechat_pay, stripe, github, standard_webhooks, svix];

fn stamp(ago: u64) -> String {
    (SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - ago).to_string()
}

fn rsa_sha256(message: &[u8]) -> String {
    BASE64_STANDARD.encode(KEY.sign(message).to_bytes())
}

fn hmac_sha256(secret: &[u8], message: &[u8]) -> Vec<u8> {
    Hmac::<sha2::Sha256>::new_from_slice(secret).unwrap().chain_update(message).finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in bytes {
        write!(hex, "{byte:02x}").unwrap();
    }
    hex
}

pub(crate) fn alipay(id: &str, delivery: u8, _: u64) -> Delivery {
    by_alipay(id, delivery, "utf-8", "订单 7+1".as_bytes())
}

/// 订单 in GBK.
fn alipay_in_gbk(id: &str, delivery: u8, _: u64) -> Delivery {
    by_alipay(id, delivery, "GBK", b"\xb6\xa9\xb5\xa5")
}

fn by_alipay(id: &str, delivery: u8, charset: &str, subject: &[u8]) -> Delivery {
    let time = format!("2026-01-01 10:0{delivery}:00");
    let mut fields: Vec<(&str, &[u8])> = vec![
        ("notify_time", time.as_bytes()),
        ("notify_type", b"trade_status_sync"),
        ("notify_id", id.as_bytes()),
        ("app_id", b"2021000000000000"),
        ("charset", charset.as_bytes()),
        ("version", b"1.0"),
        ("trade_no", b"2026010122001400000000000001"),
        ("out_trade_no", b"70501111111S001111119"),
        ("trade_status", b"TRADE_SUCCESS"),
        ("total_amount", b"88.00"),
        ("fund_bill_list", br#"[{"amount":"88.00","fundChannel":"ALIPAYACCOUNT"}]"#),
        ("subject", subject),
    ];
    let mut sorted = fields.clone();
    sorted.sort_unstable();
    let signed: Vec<_> = sorted.iter().map(|(name, value)| [name.as_bytes(), b"=", value].concat()).collect();
    let sign = rsa_sha256(&signed.join(&b'&'));
    fields.extend([("sign_type", &b"RSA2"[..]), ("sign", sign.as_bytes())]);
    let encoded = |bytes: &[u8]| form_urlencoded::byte_serialize(bytes).collect::<String>();
    let body: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let content_type = "application/x-www-form-urlencoded; charset=utf-8";
    Delivery::new("/alipay", content_type, body.join("&").into_bytes())
}

pub(crate) fn wechat_pay(id: &str, delivery: u8, ago: u64) -> Delivery {
    let (nonce, aad) = (format!("nonce-{delivery:06}"), "transaction");
    let order =
        json!({ "out_trade_no": format!("order of {id}"), "trade_state": "SUCCESS", "amount": { "total": 8800 } });
    let order = order.to_string();
    let payload = Payload { msg: order.as_bytes(), aad: aad.as_bytes() };
    let nonce_bytes: [u8; 12] = nonce.as_bytes().try_into().unwrap();
    let ciphertext = Aes256Gcm::new(WECHAT_V3_KEY.into()).encrypt(&nonce_bytes.into(), payload).unwrap();
    let body = json!({
        "id": id,
        "create_time": "2026-01-01T10:00:00+08:00",
        "resource_type": "encrypt-resource",
        "event_type": "TRANSACTION.SUCCESS",
        "summary": "支付成功",
        "resource": {
            "original_type": "transaction",
            "algorithm": "AEAD_AES_256_GCM",
            "ciphertext": BASE64_STANDARD.encode(ciphertext),
            "associated_data": aad,
            "nonce": nonce,
        },
    })
    .to_string();
    let (stamp, nonce) = (stamp(ago), format!("{delivery:032}"));
    let signature = rsa_sha256(format!("{stamp}\n{nonce}\n{body}\n").as_bytes());
    Delivery::new("/wechat-pay", "application/json", body.into_bytes())
        .with("wechatpay-serial", WECHAT_SERIAL.to_owned())
        .with("wechatpay-timestamp", stamp)
        .with("wechatpay-nonce", nonce)
        .with("wechatpay-signature", signature)
}

pub(crate) fn stripe(id: &str, delivery: u8, ago: u64) -> Delivery {
    let body = json!({ "id": id, "object": "event", "pending_webhooks": delivery, "type": "payment_intent.succeeded" });
    let (body, stamp) = (body.to_string(), stamp(ago));
    let signed = format!("{stamp}.{body}");
    let sign = |secret: &str| hex(&hmac_sha256(secret.as_bytes(), signed.as_bytes()));
    // While a secret is being replaced, there is a signature by each.
    let signature = format!("t={stamp},v1={},v1={},v0=00", sign("whsec_new"), sign(STRIPE));
    Delivery::new("/stripe", "application/json; charset=utf-8", body.into_bytes()).with("stripe-signature", signature)
}

/// GitHub signs neither a time stamp nor the identifier.
pub(crate) fn github(id: &str, _: u8, _: u64) -> Delivery {
    let body = json!({ "ref": "refs/heads/main", "after": id }).to_string().into_bytes();
    let signature = format!("sha256={}", hex(&hmac_sha256(GITHUB.as_bytes(), &body)));
    Delivery::new("/github", "application/json", body)
        .with("x-github-event", "push".to_owned())
        .with("x-github-delivery", id.to_owned())
        .with("x-github-hook-id", "292430182".to_owned())
        .with("x-hub-signature-256", signature)
}

pub(crate) fn standard_webhooks(id: &str, delivery: u8, ago: u64) -> Delivery {
    by_standard(["webhook-id", "webhook-timestamp", "webhook-signature"], id, delivery, ago)
}

fn svix(id: &str, delivery: u8, ago: u64) -> Delivery {
    by_standard(["svix-id", "svix-timestamp", "svix-signature"], id, delivery, ago)
}

fn by_standard(names: [&'static str; 3], id: &str, delivery: u8, ago: u64) -> Delivery {
    let body = json!({ "type": "contact.created", "attempt": delivery, "data": {} }).to_string();
    let stamp = stamp(ago);
    let secret = BASE64_STANDARD.decode(STANDARD.trim_start_matches("whsec_")).unwrap();
    let signature = BASE64_STANDARD.encode(hmac_sha256(&secret, format!("{id}.{stamp}.{body}").as_bytes()));
    Delivery::new("/standard", "application/json", body.into_bytes())
        .with(names[0], id.to_owned())
        .with(names[1], stamp)
        .with(names[2], format!("v1a,AAAA v1,{signature}"))
}
