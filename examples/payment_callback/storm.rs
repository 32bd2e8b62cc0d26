//! The storm: duplicates, concurrent deliveries, late and early ones, forged ones, wrong amounts, and a server that dies.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep};

use crate::{
    Books, Failure,
    platform::{Platform, Server},
    play::notice,
    shop::{Notice, Status},
};

const SENDERS: usize = 8;
const DEATHS: usize = 3;
/// How often the platform sends a notice that the shop refuses.
const PATIENCE: usize = 10;
const DEADLINE: Duration = Duration::from_secs(60);

/// The number of an order of the storm.
pub(crate) fn order(number: usize) -> String {
    format!("S-{number:03}")
}

enum Delivery {
    Real(Notice, usize),
    Forged(Notice),
    WrongAmount(Notice),
}

struct Storm<'a> {
    platform: &'a Platform,
    queue: Mutex<VecDeque<Delivery>>,
    answers: AtomicUsize,
    /// Senders that are at work, who may put something back into the queue.
    busy: AtomicUsize,
    ends: Instant,
}

/// Gives back the server that is alive in the end.
pub(crate) async fn storm(
    platform: &Platform,
    server: Server,
    books: &Books,
    orders: usize,
) -> Result<Server, Failure> {
    let mut queue: Vec<_> = (1..=orders).flat_map(deliveries).collect();
    let mut dice = Dice(1);
    for at in (1..queue.len()).rev() {
        queue.swap(at, dice.below(at + 1));
    }
    let total = queue.len();
    let storm = Storm {
        platform,
        queue: Mutex::new(queue.into()),
        answers: AtomicUsize::new(0),
        busy: AtomicUsize::new(0),
        ends: Instant::now() + DEADLINE,
    };
    let senders = try_join_all((0..SENDERS).map(|_| storm.send()));
    let (_, server) = tokio::try_join!(senders, storm.kill(server, books, total))?;
    Ok(server)
}

/// What is delivered about an order: each thing several times.
fn deliveries(number: usize) -> Vec<Delivery> {
    let order = order(number);
    let mut dice = Dice(number as u64);
    let told: &[Status] = match number % 10 {
        0 => &[Status::Closed],
        // One of the two comes first, and the other is refused.
        1 => &[Status::Paid, Status::Closed],
        2 | 3 => &[Status::Paid, Status::Refunded],
        _ => &[Status::Paid],
    };
    let mut deliveries = Vec::new();
    for status in told {
        let notice = notice(&order, *status);
        for _ in 0..=dice.below(4) {
            deliveries.push(Delivery::Real(notice.clone(), PATIENCE));
        }
    }
    let paid = notice(&order, Status::Paid);
    deliveries.push(Delivery::Forged(paid.clone()));
    deliveries.push(Delivery::WrongAmount(Notice { cents: paid.cents + 100, ..paid }));
    deliveries
}

impl Storm<'_> {
    async fn send(&self) -> Result<(), Failure> {
        while Instant::now() < self.ends {
            self.busy.fetch_add(1, Relaxed);
            let delivery = self.lock().pop_front();
            let empty = delivery.is_none();
            if let Some(delivery) = delivery {
                self.deliver(delivery).await?;
            }
            if self.busy.fetch_sub(1, Relaxed) == 1 && empty && self.lock().is_empty() {
                return Ok(());
            }
            if empty {
                sleep(Duration::from_millis(5)).await;
            }
        }
        Err("the storm does not end".into())
    }

    async fn deliver(&self, delivery: Delivery) -> Result<(), Failure> {
        let status = match &delivery {
            Delivery::Real(notice, _) | Delivery::WrongAmount(notice) => self.platform.tell(notice).await,
            Delivery::Forged(notice) => self.platform.forge(notice).await,
        };
        let Some(status) = status else {
            sleep(Duration::from_millis(20)).await;
            self.lock().push_back(delivery);
            return Ok(());
        };
        self.answers.fetch_add(1, Relaxed);
        match (delivery, status.as_u16()) {
            (Delivery::Real(..), 200) | (Delivery::Forged(_), 401) | (Delivery::WrongAmount(_), 409 | 422) => {}
            // Where one with a wrong amount runs at this moment, the real one is the other one: 422, until that is refused.
            (delivery @ (Delivery::Real(..) | Delivery::WrongAmount(_)), 503 | 422) => {
                sleep(Duration::from_millis(2)).await;
                self.lock().push_back(delivery);
            }
            (Delivery::Real(notice, patience), 409) => {
                if patience > 1 {
                    self.lock().push_back(Delivery::Real(notice, patience - 1));
                }
            }
            (Delivery::Real(notice, _), status) => return Err(format!("{notice:?}: {status}").into()),
            (Delivery::Forged(notice), status) => return Err(format!("forged {notice:?}: {status}").into()),
            (Delivery::WrongAmount(notice), status) => return Err(format!("wrong {notice:?}: {status}").into()),
        }
        Ok(())
    }

    /// Kills the server in the middle, and starts another.
    async fn kill(&self, mut server: Server, books: &Books, total: usize) -> Result<Server, Failure> {
        for death in 1..=DEATHS {
            while self.answers.load(Relaxed) < total * death / (DEATHS + 1) && Instant::now() < self.ends {
                sleep(Duration::from_millis(1)).await;
            }
            server.kill().await?;
            server = Server::start(books, None).await?;
            self.platform.turn_to(server.address);
            println!("   killed and started again, after {} answers", self.answers.load(Relaxed));
        }
        Ok(server)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Delivery>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers that are the same in each storm.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}
