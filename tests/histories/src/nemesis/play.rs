use std::{io, sync::Arc};

use rustix::process::Signal;
use tokio::sync::{Mutex, watch};

use super::{Fault, Planned, Schedule};
use crate::{
    history::{Line, Log},
    proxy::{Passage, Proxy},
    servers::Place,
    services::Supervised,
    time::{now, pause},
};

/// How long a change of the table is tried, in milliseconds.
const PATIENCE: u64 = 30_000;

/// What faults are done to.
pub(crate) struct Stage {
    pub(crate) services: Vec<Supervised>,
    /// One for each service.
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) place: Mutex<Place>,
    pub(crate) log: Arc<Log>,
}

/// Plays a schedule until `end` is true, and ends with everything healed.
pub(crate) async fn play(stage: Arc<Stage>, schedule: Schedule, end: watch::Receiver<bool>) -> io::Result<()> {
    let mut ends = end.clone();
    for planned in schedule {
        tokio::select! {
            () = pause(planned.pause) => {}
            _ = ends.wait_for(|end| *end) => {}
        }
        if *end.borrow() {
            break;
        }
        stage.strike(planned).await?;
    }
    Ok(())
}

impl Stage {
    async fn strike(&self, planned: Planned) -> io::Result<()> {
        println!("{planned}");
        let Planned { fault, service, lasts, late, clock, .. } = planned;
        let (target, proxy) = (&self.services[service], &self.proxies[service]);
        let began = now();
        match fault {
            Fault::Stop => {
                target.signal(Signal::STOP).await;
                pause(lasts).await;
                target.signal(Signal::CONT).await;
            }
            Fault::Kill => {
                target.kill().await;
                pause(lasts).await;
                target.start(clock).await?;
            }
            Fault::HalfOpen => {
                proxy.go_silent();
                pause(lasts).await;
            }
            Fault::Cut => pass(proxy, Passage::Cut, lasts).await,
            Fault::Held => pass(proxy, Passage::Held, lasts).await,
            Fault::Unanswered => pass(proxy, Passage::Unanswered, lasts).await,
            Fault::Slow => pass(proxy, Passage::Slow(late), lasts).await,
            Fault::StoreKill => self.place.lock().await.restart(lasts).await?,
            Fault::StoreStop => {
                let mut place = self.place.lock().await;
                place.stop();
                pause(lasts).await;
                place.go_on();
            }
            Fault::Failover => {
                let [confirmed, killed, promoted] = self.place.lock().await.fail_over(late).await?;
                for (fault, began, at) in [(fault, confirmed, killed), (Fault::StoreKill, killed, promoted)] {
                    self.log.add_at(at, Line::Fault { name: fault.name().into(), target: planned.target(), began });
                }
                return Ok(());
            }
            Fault::Alter => {
                // Somebody holds the table most of the time.
                while let Err(error) = self.place.lock().await.alter(began).await {
                    if now() > began + PATIENCE {
                        return Err(io::Error::other(error));
                    }
                    pause(50).await;
                }
            }
        }
        self.log.add(Line::Fault { name: fault.name().into(), target: planned.target(), began });
        Ok(())
    }
}

async fn pass(proxy: &Proxy, passage: Passage, lasts: u64) {
    proxy.set(passage);
    pause(lasts).await;
    proxy.set(Passage::Open);
}
