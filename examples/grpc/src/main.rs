//! `serve` and `send`, from the command line.

use std::{env, time::Duration};

use grpc_transfers::{
    Failure, client,
    messages::Transfer,
    server::{Options, serve},
};
use tonic::transport::Channel;

const USAGE: &str = "usage: grpc-transfers serve ADDRESS [STORE [LEDGER [LEASE_MS [WORK_MS [at-most-once]]]]]
       grpc-transfers send URL KEY ACCOUNT AMOUNT

STORE is `memory`, or the URL of a Redis or a PostgreSQL server. LEDGER is a file.";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", address, ref rest @ ..] if rest.len() <= 5 => {
            let argument = |at: usize, default: &'static str| rest.get(at).copied().unwrap_or(default);
            let options = Options {
                address: address.parse()?,
                store: argument(0, "memory").to_owned(),
                ledger: argument(1, "transfers.txt").into(),
                lease: Duration::from_millis(argument(2, "30000").parse()?),
                work: Duration::from_millis(argument(3, "0").parse()?),
                at_most_once: rest.get(4) == Some(&"at-most-once"),
            };
            let stop = async { drop(tokio::signal::ctrl_c().await) };
            serve(options, stop).await
        }
        ["send", url, key, to, amount] => {
            let channel = Channel::from_shared(url.to_owned())?.connect_lazy();
            let transfer = Transfer { to: to.to_owned(), amount: amount.parse()? };
            println!("{:?}", client::create(&channel, key, &transfer, Duration::from_secs(60)).await?);
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
