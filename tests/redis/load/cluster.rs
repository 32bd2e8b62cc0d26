//! Six servers of a cluster, whose masters die one after the other.

use std::{thread, time::Duration};

use tower_idempotency::store::RecordKey;

use super::{
    Load,
    failover::Failover,
    log::{Told, now},
};
use crate::cluster::nodes::{Nodes, share_of, slot, slot_of};

/// Which of the three masters has the record.
pub(super) fn share(key: &str) -> usize {
    share_of(slot(&RecordKey::new("/pay", None, key).unwrap()))
}

#[test]
fn masters_die_in_turn() {
    let mut nodes = Nodes::start();
    nodes.forbid_failover();
    let load = Load::start(&nodes.url(), nodes.folder(), 3);
    let mut failovers = Vec::new();
    for round in 0..6 {
        thread::sleep(Duration::from_secs(1));
        let share = round % 3;
        let name = (0..100).map(|n| n.to_string()).find(|name| share_of(slot_of(name.as_bytes())) == share).unwrap();
        // Without this there is next to nothing that a replica lacks.
        let cut_off = (round % 2 == 1).then_some(Duration::from_millis(400));
        let mut failover =
            nodes.kill_master(share, |master, replica| Failover::begin(master, &[replica], &name, cut_off));
        nodes.wait_for_promotion(share);
        failover.ended = now();
        nodes.return_as_replica(share);
        failovers.push((share, failover));
    }
    let log = load.end();
    let told = Told::read(&log);
    for (killed, failover) in &failovers {
        failover.spared(&told, |key| share(key) == *killed).went_on();
    }
    told.trace(|key, first, second| {
        let mut failovers = failovers.iter().filter(|(killed, _)| *killed == share(key));
        failovers.find_map(|(_, failover)| failover.explains(first, second))
    });
    told.all_is_answered();
}
