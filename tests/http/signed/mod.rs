//! Callbacks signed byte for byte as the platforms' documents say, against the shop of `examples/signed_callbacks`.
//!
//! `private_key.pem` was made for these tests and is no secret.

#[path = "../../../examples/signed_callbacks/alipay.rs"]
mod alipay;
#[path = "../../../examples/signed_callbacks/answers.rs"]
mod answers;
#[path = "../../../examples/signed_callbacks/clock.rs"]
mod clock;
mod deliveries;
mod forgeries;
#[path = "../../../examples/signed_callbacks/github.rs"]
mod github;
mod lab;
#[path = "../../../examples/signed_callbacks/mac.rs"]
mod mac;
mod published;
#[path = "../../../examples/signed_callbacks/rsa_sha256.rs"]
mod rsa_sha256;
mod senders;
#[path = "../../../examples/signed_callbacks/shop.rs"]
mod shop;
#[path = "../../../examples/signed_callbacks/standard_webhooks.rs"]
mod standard_webhooks;
#[path = "../../../examples/signed_callbacks/stripe.rs"]
mod stripe;
#[path = "../../../examples/signed_callbacks/wechat_pay_v3.rs"]
mod wechat_pay_v3;
