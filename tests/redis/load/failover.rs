//! What the death of a master, and a replica in its place, may do to the operations whose records it had.

use std::time::Duration;

use super::{
    LEASE, LEFT, STORE_TIMEOUT,
    log::{Run, Told, now},
};
use crate::server::Server;

/// A master was killed and a replica took its place.
pub(super) struct Failover {
    /// Before this, all that the master had received had reached its replicas, since they confirmed it.
    pub(super) confirmed: Duration,
    pub(super) killed: Duration,
    /// When the replica was the master.
    pub(super) ended: Duration,
}

impl Failover {
    /// Kills the master: as it is, or after its replicas have received nothing for a while.
    ///
    /// `name` is one that the master may write to.
    pub(super) fn begin(master: &mut Server, replicas: &[&Server], name: &str, cut_off: Option<Duration>) -> Self {
        let confirmed = now();
        assert!(master.is_confirmed_by(replicas.len(), name), "the replicas do not follow");
        if let Some(time) = cut_off {
            // They would connect again at once, so they have to stand still meanwhile.
            for replica in replicas {
                replica.pause();
            }
            master.tell("CLIENT KILL TYPE replica");
            std::thread::sleep(time);
        }
        let killed = now();
        master.kill();
        for replica in replicas {
            replica.resume();
        }
        Self { confirmed, killed, ended: Duration::MAX }
    }

    /// Why an operation of this master's has an effect again.
    ///
    /// A replica that lacks the claim grants it anew, as one of no higher number. If it has the claim, and lacks how
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
        let mut times: Vec<_> = answers.map(|answer| answer.at.saturating_sub(answer.asked)).collect();
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
        assert!(times.len() > 10 && times[times.len() / 2] < STORE_TIMEOUT && unavailable * 2 < times.len());
    }
}

#[test]
fn what_has_another_cause_is_not_traced() {
    let time = Duration::from_millis;
    let run = |asked, settled: Option<u64>, attempt| Run {
        asked: time(asked),
        at: time(asked + 10),
        settled: settled.map(time),
        attempt,
        ..Run::default()
    };
    let failover = Failover { confirmed: time(10_000), killed: time(10_500), ended: time(13_000) };
    let cause = |first: &Run<'_>, second: &Run<'_>| failover.explains(first, second);

    assert_eq!(cause(&run(10_100, Some(10_300), 1), &run(13_100, None, 1)), Some("the claim was lost"));
    assert_eq!(cause(&run(9_800, Some(10_100), 1), &run(13_100, None, 2)), Some("the kept answer was lost"));
    assert_eq!(cause(&run(9_800, None, 1), &run(13_100, None, 2)), Some("away for longer than the lease"));

    // The replica had it all.
    assert_eq!(cause(&run(9_800, Some(9_900), 1), &run(13_100, None, 1)), None);
    assert_eq!(cause(&run(9_800, Some(9_900), 1), &run(13_100, None, 2)), None);
    // Before anything happened, and long after.
    assert_eq!(cause(&run(10_100, None, 1), &run(10_400, None, 1)), None);
    assert_eq!(cause(&run(14_000, None, 1), &run(16_500, None, 2)), None);
    // Within the lease.
    assert_eq!(cause(&run(9_800, None, 1), &run(10_900, None, 2)), None);
    // Another server was the master by then.
    assert_eq!(cause(&run(12_900, None, 1), &run(13_100, None, 1)), None);
}
