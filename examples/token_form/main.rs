//! Four order forms on one page, one of which orders twice.
//!
//! ```console
//! $ cargo run --example token_form                        # then open the address that it prints
//! $ cargo run --example token_form -- --listen 0.0.0.0:3000 --token-life 30
//! ```
//!
//! Double-click a button, go back and send again, open the page in three tabs, send an order of nothing and correct it:
//! beside each form stands how often it was sent, and how many orders came of that.

mod page;
mod shop;
mod words;

use std::{env, error::Error, time::Duration};

use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut listen, mut token_life) = ("127.0.0.1:3000".to_owned(), Duration::from_secs(15 * 60));
    let mut args = env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} takes a value"))?;
        match flag.as_str() {
            "--listen" => listen = value,
            "--token-life" => token_life = Duration::from_secs(value.parse()?),
            _ => return Err("usage: token_form [--listen ADDRESS] [--token-life SECONDS]".into()),
        }
    }
    let listener = TcpListener::bind(&listen).await.map_err(|error| format!("{listen}: {error}"))?;
    println!("open http://{} in a browser", listener.local_addr()?);
    Ok(axum::serve(listener, shop::app(token_life)).await?)
}
