//! A master and two replicas, watched by three sentinels. Each dies when it is the master.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    Load,
    failover::Failover,
    log::{Told, now},
};
use crate::sentinel::group::Group;

#[tokio::test]
async fn masters_die_in_turn() {
    let mut group = Group::start().await;
    // No other takes over because the master seems to be away, as it may on a machine that is busy.
    group.be_patient(Duration::from_secs(60));
    let load = Load::start(&group.url(), group.servers[0].folder(), 1);
    let mut failovers = Vec::new();
    for round in 0..4 {
        sleep(Duration::from_secs(1)).await;
        // Without this there is next to nothing that a replica lacks.
        let cut_off = (round % 2 == 1).then_some(Duration::from_millis(400));
        let (master, replicas) = group.servers.split_first_mut().unwrap();
        let replicas: Vec<_> = replicas.iter().collect();
        let mut failover = Failover::begin(master, &replicas, "confirmed", cut_off);
        group.be_patient(Duration::from_secs(1));
        let killed = group.servers[0].port();
        group.wait_for_promotion().await;
        failover.ended = now();
        group.be_patient(Duration::from_secs(60));
        let killed = group.servers.iter().position(|server| server.port() == killed).unwrap();
        group.return_as_replica(killed).await;
        failovers.push(failover);
    }
    let log = load.end();
    let told = Told::read(&log);
    told.trace(|_, first, second| failovers.iter().find_map(|failover| failover.explains(first, second)));
    told.all_is_answered();
}
