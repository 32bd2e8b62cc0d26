//! Messages and functions in transactions, off the web.

use std::convert::Infallible;

use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::{
    ConsumerLayer, Operation,
    consumer::{Action, Consumed},
    run::{Once, RunError},
};

use crate::lab::{Lab, Process};

struct Order {
    id: &'static str,
    fails: bool,
    operation: Option<Operation>,
}

impl Order {
    fn new(id: &'static str, fails: bool) -> Self {
        Self { id, fails, operation: None }
    }
}

async fn pay_out<D: Lab>(order: Order) -> Result<(), &'static str> {
    let mut tx = order.operation.ok_or("no operation")?.transaction::<D>().map_err(|_| "no transaction")?;
    D::say(&mut tx, &format!("INSERT INTO effects VALUES ('{}')", order.id)).await.map_err(|_| "no effect")?;
    if order.fails { Err("told to fail") } else { Ok(()) }
}

pub(crate) async fn messages<D: Lab>() {
    let process = Process::<D>::start(&D::place().await).await;
    let layer = ConsumerLayer::transactional(process.store.clone(), "payouts", |order: &Order| order.id.to_owned())
        .operation(|order, operation| order.operation = Some(operation));
    let mut payouts = layer.layer(service_fn(pay_out::<D>));
    let mut deliver = async |order| payouts.ready().await.unwrap().call(order).await.unwrap();

    let failed = deliver(Order::new("a", true)).await;
    assert!(matches!(failed, Consumed::Failed { .. }), "{failed:?}");
    assert!(matches!(failed.action(), Action::GiveBack { .. }));
    assert_eq!((process.effects("a").await, process.records().await), (0, 0));

    assert_eq!(deliver(Order::new("a", false)).await, Consumed::Executed(()));
    assert_eq!(deliver(Order::new("a", false)).await.action(), Action::Acknowledge);
    assert_eq!((process.effects("a").await, process.records().await), (1, 1));
}

pub(crate) async fn functions<D: Lab>() {
    let process = Process::<D>::start(&D::place().await).await;
    let once = Once::transactional(process.store.clone(), "close-of-day");
    let run = async |fails: bool| {
        once.run("2026-11-29", move |operation: Operation| async move {
            let mut tx = operation.transaction::<D>().unwrap();
            D::say(&mut tx, "INSERT INTO effects VALUES ('closed')").await.unwrap();
            if fails { Err("told to fail") } else { Ok(7) }
        })
        .await
    };
    assert!(matches!(run(true).await, Err(RunError::Failed("told to fail"))));
    assert_eq!((process.effects("closed").await, process.records().await), (0, 0));
    for _ in 0..2 {
        assert_eq!(run(false).await, Ok(7));
    }
    assert_eq!(process.effects("closed").await, 1);

    // A function that takes no transaction has its value recorded all the same.
    let plain = once.run("plain", |_| async { Ok::<_, Infallible>(1) }).await;
    assert_eq!(plain, Ok(1));
}
