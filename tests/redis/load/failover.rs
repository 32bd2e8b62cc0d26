//! What the death of a master, and a replica in its place, may do to the operations whose records it had.

use std::time::Duration;

use super::{
    LEASE, LEFT, STORE_TIMEOUT,
    log::{Run, Told, now},
};
use crate::server::Server;

/// A master was killed and a replica took its place.
pub(super) struct Failover {
    /// Before this, all that the master was told had reached its replicas, since they confirmed it.
    pub(super) confirmed: Duration,
    pub(super) killed: Duration,
    /// When the replica was the master.
    pub(super) ended: Duration,
}

impl Failover {
    /// Kills the master: as it is, or after its replicas have heard nothing for a while.
    ///
    /// `name` is one that the master may write to.
    pub(super) fn begin(master: &mut Server, replicas: &[&Server], name: &str, cut_off: Option<Duration>) -> Self {
        let confirmed = now();
        assert!(master.is_confirmed_by(replicas.len(), name), "the replicas do not follow");
        if let Some(time) = cut_off {
            // They would connect again at once, so they have to stand still meanwhile.
            replicas.iter().for_each(|replica| replica.pause());
            master.tell("CLIENT KILL TYPE replica");
            std::thread::sleep(time);
        }
        let killed = now();
        master.kill();
        replicas.iter().for_each(|replica| replica.resume());
        Self { confirmed, killed, ended: Duration::MAX }
    }

    /// Why an operation of this master's has an effect again.
    ///
    /// A replica that lacks the claim grants it anew, as one of no higher number. Where it has the claim, and lacks how
    /// that ended or was itself too late for it, the lease has to lapse first, and the number rises.
    pub(super) fn explains(&self, first: &Run<'_>, second: &Run<'_>) -> Option<&'static str> {
        let lost = |written: Duration| written >= self.confirmed;
        let lapsed = second.attempt > first.attempt && second.at >= first.asked + LEASE;
        if first.asked > self.ended || second.at < self.killed {
            None
        } else if second.attempt <= first.attempt {
            (first.asked <= self.killed && lost(first.at)).then_some("the claim was lost")
        } else if let Some(settled) = first.settled {
            (lapsed && first.asked <= self.killed && lost(settled)).then_some("the kept answer was lost")
        } else {
            (lapsed && self.ended >= self.killed + LEFT).then_some("away for longer than the lease")
        }
    }

    /// How the requests fared, meanwhile, that the killed master has nothing to do with.
    pub(super) fn spared(&self, told: &Told<'_>, is_harmed: impl Fn(&str) -> bool) -> Spared {
        let during = |at: Duration| at >= self.killed && at <= self.ended;
        let spared = || told.operations.iter().filter(|(key, _)| !is_harmed(key)).map(|(_, operation)| operation);
        let answers = spared().flat_map(|operation| &operation.answers).filter(|answer| during(answer.at));
        let mut times: Vec<_> = answers.map(|answer| answer.at - answer.asked).collect();
        times.sort_unstable();
        let unavailable = spared().flat_map(|operation| &operation.refused);
        let unavailable = unavailable.filter(|refused| during(refused.at) && refused.status == 503).count();
        Spared { times, unavailable }
    }
}

pub(super) struct Spared {
    times: Vec<Duration>,
    unavailable: usize,
}

impl Spared {
    /// Most are answered in less than it takes to give up a store.
    pub(super) fn went_on(&self) {
        let Self { times, unavailable } = self;
        println!(
            "{} answers beside it, half of them within {:?}, {unavailable} without a store",
            times.len(),
            times.get(times.len() / 2)
        );
        assert!(times.len() > 10 && times[times.len() / 2] < STORE_TIMEOUT && *unavailable < times.len());
    }
}
