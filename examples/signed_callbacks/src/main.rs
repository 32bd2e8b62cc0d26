//! A shop that receives signed callbacks: Alipay, WeChat Pay v3, Stripe, GitHub, and Standard Webhooks.
//!
//! Each signature is verified over the raw bytes before anything is claimed, so nobody else can have a callback
//! remembered as done. The secrets come from the environment:
//!
//! ```console
//! $ export ALIPAY_PUBLIC_KEY="$(cat alipay.pem)" WECHAT_PAY_PUBLIC_KEY="$(cat wechat.pem)" WECHAT_PAY_SERIAL=PUB_KEY_ID_…
//! $ export WECHAT_PAY_V3_KEY=… STRIPE_SECRET=whsec_… GITHUB_SECRET=… STANDARD_WEBHOOKS_SECRET=whsec_…
//! $ cargo run -p signed-callbacks
//! ```

mod alipay;
mod answers;
mod clock;
mod github;
mod mac;
mod rsa_sha256;
mod shop;
mod standard_webhooks;
mod stripe;
#[cfg(test)]
mod tests;
mod wechat_pay_v3;

use std::{env, error::Error};

use tokio::net::TcpListener;
use tower_idempotency::{IdempotencyLayer, MemoryStore};

use self::{rsa_sha256::PublicKey, shop::Secrets};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let of_environment = |name: &str| env::var(name).map_err(|error| format!("{name}: {error}"));
    let secrets = Secrets {
        alipay: PublicKey::from_pem(&of_environment("ALIPAY_PUBLIC_KEY")?)?,
        github: of_environment("GITHUB_SECRET")?,
        standard_webhooks: of_environment("STANDARD_WEBHOOKS_SECRET")?,
        stripe: of_environment("STRIPE_SECRET")?,
        wechat_pay: [(
            of_environment("WECHAT_PAY_SERIAL")?,
            PublicKey::from_pem(&of_environment("WECHAT_PAY_PUBLIC_KEY")?)?,
        )]
        .into(),
        wechat_pay_v3_key: of_environment("WECHAT_PAY_V3_KEY")?.as_bytes().try_into()?,
    };
    let base = IdempotencyLayer::new(MemoryStore::new());
    let handle = |sender: &str, what: &[u8]| println!("{sender}: {}", String::from_utf8_lossy(what));
    let app = shop::router(&base, secrets, Box::new(handle));
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
