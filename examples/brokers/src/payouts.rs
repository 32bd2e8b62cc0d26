//! What is paid out, whichever broker the message comes from.

use std::{error::Error, time::Duration};

use serde::Deserialize;
use tower_idempotency::{ConsumerLayer, Operation, fingerprint::Fingerprint, store::Store};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// What a message says. One that says nothing that can be read has no number either, and is put aside.
#[derive(Default, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: Option<String>,
    #[serde(default)]
    pub(crate) amount: u64,
    #[serde(skip)]
    pub(crate) operation: Option<Operation>,
}

/// The bank, for this example.
pub(crate) async fn pay(order: Order) -> Result<(), Failure> {
    let operation = order.operation.ok_or("no operation")?;
    if order.amount == 0 {
        return Err("the bank declines to pay nothing".into());
    }
    // A bank that takes a key gets the same one at each attempt.
    println!("paid {} for {}, attempt {}", order.amount, operation.key(), operation.attempt());
    println!("  with Idempotency-Key: {}", operation.child_key("bank"));
    Ok(())
}

/// The key is the order's number, and another amount under the same number is another message.
pub(crate) fn layer(store: impl Store) -> ConsumerLayer<Order> {
    let amount = |order: &Order| Fingerprint::builder().part(order.amount.to_be_bytes()).build();
    ConsumerLayer::with_fingerprint(store, "payouts", |order: &Order| order.number.clone(), amount)
        .operation(|order, operation| order.operation = Some(operation))
        .attempts(3)
        .retention(Duration::from_secs(7 * 24 * 60 * 60))
}
