//! The play: what goes wrong with callbacks, one after the other and then all at once.

use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tower_idempotency::sql::{SqlStore, guard::RowState as _};

use crate::{
    Books, Failure, MESSAGES, RECORDS,
    database::Database,
    ledger,
    platform::{PATIENCE, Platform, Server},
    service::FRONT_LIFE,
    shop::{Notice, SCHEMA, Status},
    storm,
};

/// How many orders the storm is about.
const ORDERS: usize = 60;

/// Whose order it is.
fn account(order: &str) -> &'static str {
    if order.ends_with(['1', '3', '5', '7', '9']) { "ann" } else { "bob" }
}

/// What an order is about, in cents.
pub(crate) fn price(order: &str) -> i64 {
    order.bytes().fold(7, |cents, byte| (cents * 7919 + i64::from(byte)) % 99_991) + 1
}

/// Returns the platform's notice about an order.
pub(crate) fn notice(order: &str, status: Status) -> Notice {
    Notice { order: order.into(), status, cents: price(order), serial: format!("{order}-{status:?}"), sent: 0 }
}

pub(crate) async fn play<D: Database>(store: SqlStore<D>, books: &Books) -> Result<bool, Failure> {
    open_the_books(&store).await?;
    let server = Server::start(books, None).await?;
    let platform = Platform::new(server.address);
    let scene = Scene(&platform);
    println!(
        "A shop has its orders paid through a platform, which tells it so, again and again, until it hears \"success\"."
    );

    println!("\n1. M-1 is paid. The platform has not heard the answer, and tells it three times more.");
    for _ in 0..4 {
        scene.tell("M-1", Status::Paid, 200).await?;
    }

    println!("\n2. Somebody who does not know the secret says that M-2 is paid. Nothing of that is believed or kept.");
    let forged = platform.forge(&notice("M-2", Status::Paid)).await;
    expect("forged: M-2 is paid", forged, 401)?;

    println!("\n3. M-2 is paid, but one cent too little; somebody pays an order that there is not; then M-2 in full.");
    let short = Notice { cents: price("M-2") - 1, ..notice("M-2", Status::Paid) };
    expect("M-2 is paid, a cent too little", platform.tell(&short).await, 409)?;
    scene.tell("M-0", Status::Paid, 404).await?;
    scene.tell("M-2", Status::Paid, 200).await?;

    println!(
        "\n4. M-3 is paid, told twenty times at once. Those that come while it runs hear \"again\", not \"success\"."
    );
    let paid = notice("M-3", Status::Paid);
    let answers = join_all((0..20).map(|_| platform.tell(&paid))).await;
    let of = |status: u16| answers.iter().flatten().filter(|answer| answer.as_u16() == status).count();
    println!("   {} heard \"success\", {} \"again\"", of(200), of(503));
    if of(200) == 0 || of(200) + of(503) != 20 {
        return Err(format!("scene 4: {answers:?}").into());
    }

    println!("\n5. M-4 is refunded, which comes before that it is paid. Refused, not remembered: it comes again.");
    scene.tell("M-4", Status::Refunded, 409).await?;
    scene.tell("M-4", Status::Paid, 200).await?;
    scene.tell("M-4", Status::Refunded, 200).await?;

    println!("\n6. M-5 is paid, and a late word says that it was closed; M-6 is closed, and paid all the same.");
    scene.tell("M-5", Status::Paid, 200).await?;
    scene.tell("M-5", Status::Closed, 409).await?;
    scene.tell("M-6", Status::Closed, 200).await?;
    scene.tell("M-6", Status::Paid, 409).await?;
    println!("   Both messages are kept: somebody has to look, and to give the money for M-6 back.");

    println!("\n7. A week later nobody remembers the requests. The books do: M-1 is paid by this number, and M-4 was.");
    D::send(store.pool(), &format!("DELETE FROM {RECORDS}")).await?;
    if books.front.is_some() {
        // A cache is not notified of records that are deleted in the store behind it.
        sleep(FRONT_LIFE).await;
    }
    let twice = Notice { serial: "M-1-twice".into(), ..notice("M-1", Status::Paid) };
    expect("M-1 is paid, by another number", platform.tell(&twice).await, 409)?;
    scene.tell("M-1", Status::Paid, 200).await?;
    scene.tell("M-4", Status::Paid, 200).await?;

    println!("\n8. The server dies within M-7: the order has moved, the balance has grown, nothing is committed.");
    server.kill().await?;
    let mut server = Server::start(books, Some("M-7")).await?;
    platform.turn_to(server.address);
    let paid = notice("M-7", Status::Paid);
    let killed = async {
        let word = timeout(PATIENCE, server.says()).await??;
        server.kill().await?;
        Ok::<_, Failure>(word)
    };
    let (answer, word) = tokio::join!(platform.tell(&paid), killed);
    println!("   {}, then kill -9", word?);
    if answer.is_some() {
        return Err(format!("scene 8: {answer:?}").into());
    }
    let server = Server::start(books, None).await?;
    platform.turn_to(server.address);
    scene.tell_until("M-7", Status::Paid).await?;

    println!("\n9. All of it at once, for {ORDERS} orders, and the server is killed three times.");
    let server = storm::storm(&platform, server, books, ORDERS).await?;
    server.kill().await?;

    ledger::close(&store, &platform, account).await
}

async fn open_the_books<D: Database>(store: &SqlStore<D>) -> Result<(), Failure> {
    let pool = store.pool();
    for sql in SCHEMA {
        D::send(pool, sql).await?;
    }
    store.migrate().await?;
    store.message_log().table(MESSAGES)?.migrate().await?;
    for name in ["ann", "bob"] {
        D::send(pool, &format!("INSERT INTO payment_callback_accounts VALUES ('{name}', 0, 0)")).await?;
    }
    let orders = (1..=7).map(|n| format!("M-{n}")).chain((1..=ORDERS).map(storm::order));
    for order in orders {
        let row = format!("('{order}', '{}', {}, 'unpaid')", account(&order), price(&order));
        D::send(pool, &format!("INSERT INTO payment_callback_orders VALUES {row}")).await?;
    }
    Ok(())
}

struct Scene<'a>(&'a Platform);

impl Scene<'_> {
    /// Sends a notice once, and expects an answer.
    async fn tell(&self, order: &str, status: Status, expected: u16) -> Result<(), Failure> {
        let answer = self.0.tell(&notice(order, status)).await;
        expect(&format!("{order} is {}", status.as_str()), answer, expected)
    }

    /// Sends a notice until it is acknowledged: the database may take a moment to see that a server has died.
    async fn tell_until(&self, order: &str, status: Status) -> Result<(), Failure> {
        for _ in 0..500 {
            if self.0.tell(&notice(order, status)).await == Some(StatusCode::OK) {
                println!("   {order} is {}: 200 OK", status.as_str());
                return Ok(());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err(format!("{order} is never acknowledged").into())
    }
}

fn expect(what: &str, answer: Option<StatusCode>, expected: u16) -> Result<(), Failure> {
    match answer {
        Some(status) if status == expected => {
            println!("   {what}: {status}");
            Ok(())
        }
        answer => Err(format!("{what}: {answer:?} in place of {expected}").into()),
    }
}
