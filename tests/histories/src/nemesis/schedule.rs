use std::fmt;

use crate::{random::Random, servers::Kind};

/// What is done to a service, to the link between it and the store, or to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The service stands still.
    Stop,
    /// The service is killed, and started again with another clock.
    Kill,
    /// The link is cut.
    Cut,
    /// The connections of the link go silent, and new ones work.
    HalfOpen,
    /// The link holds what is sent, and delivers it later.
    Held,
    /// Commands arrive, and answers do not.
    Unanswered,
    /// Everything is late.
    Slow,
    /// The store is killed, and started again with its data.
    StoreKill,
    /// The store stands still.
    StoreStop,
    /// The table of the records is changed.
    Alter,
    /// The master is killed, some of whose last writes its replicas have not received, and a replica takes its place.
    Failover,
}

impl Fault {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Kill => "kill",
            Self::Cut => "cut",
            Self::HalfOpen => "half-open",
            Self::Held => "held",
            Self::Unanswered => "unanswered",
            Self::Slow => "slow",
            Self::StoreKill => "store-kill",
            Self::StoreStop => "store-stop",
            Self::Alter => "alter",
            Self::Failover => "failover",
        }
    }

    /// The least and the most that it lasts, in hundredths of a lease.
    fn lasts(self) -> (u64, u64) {
        match self {
            Self::Kill => (0, 60),
            Self::Stop => (50, 220),
            Self::Cut | Self::Held | Self::StoreStop => (20, 180),
            Self::HalfOpen => (70, 130),
            Self::Unanswered => (30, 150),
            Self::Slow => (60, 160),
            Self::StoreKill => (0, 120),
            Self::Alter | Self::Failover => (0, 0),
        }
    }
}

/// Two kinds of faults go on beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Track {
    Services,
    LinksAndStore,
}

impl Track {
    /// The kinds of faults for a store.
    pub(crate) fn faults(self, store: Kind) -> &'static [Fault] {
        use Fault::{Alter, Cut, Failover, HalfOpen, Held, Kill, Slow, Stop, StoreKill, StoreStop, Unanswered};

        match (self, store) {
            (Self::Services, _) => &[Stop, Kill],
            // Its servers are reached without a proxy.
            (Self::LinksAndStore, Kind::Sentinel | Kind::Cluster) => &[StoreStop, Failover],
            (Self::LinksAndStore, Kind::Redis | Kind::Memory) => {
                &[Cut, HalfOpen, Held, Unanswered, Slow, StoreKill, StoreStop]
            }
            (Self::LinksAndStore, Kind::Postgres | Kind::MariaDb) => {
                &[Cut, HalfOpen, Held, Unanswered, Slow, StoreKill, StoreStop, Alter]
            }
        }
    }
}

/// A fault that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// What passes before it, in milliseconds.
    pub(crate) pause: u64,
    pub(crate) fault: Fault,
    pub(crate) service: usize,
    pub(crate) lasts: u64,
    /// By how much a slow link is late, in milliseconds.
    pub(crate) late: u64,
    /// The clock of a service that is started again, in seconds off.
    pub(crate) clock: i64,
}

impl Planned {
    /// On whom: `s0` and so on, or `store`.
    pub(crate) fn target(&self) -> String {
        match self.fault {
            Fault::StoreKill | Fault::StoreStop | Fault::Alter | Fault::Failover => "store".into(),
            _ => format!("s{}", self.service),
        }
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pause, fault, lasts, .. } = self;
        write!(f, "after {pause} ms: {} of {} for {lasts} ms", fault.name(), self.target())
    }
}

/// All faults of a track, without an end. In each round, which begins with a longer pause, every kind occurs once.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    random: Random,
    kinds: &'static [Fault],
    services: usize,
    lease: u64,
    round: Vec<Fault>,
}

impl Schedule {
    pub(crate) fn new(seed: u64, kinds: &'static [Fault], services: usize, lease: u64) -> Self {
        let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        Self { random: Random::new(seed, &names.join(" ")), kinds, services, lease, round: Vec::new() }
    }
}

impl Iterator for Schedule {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let begins = self.round.is_empty();
        if begins {
            self.round = self.kinds.to_vec();
            self.random.shuffle(&mut self.round);
        }
        let (fault, random) = (self.round.pop()?, &mut self.random);
        let (least, most) = fault.lasts();
        Some(Planned {
            // Now and then nothing happens, so that what goes wrong by itself has no cause.
            pause: random.between(self.lease / 8, self.lease / 2) + if begins { self.lease * 2 } else { 0 },
            fault,
            service: random.index(self.services),
            lasts: random.between(least, most) * self.lease / 100,
            late: random.between(20, self.lease / 4),
            clock: [0, 300, -300][random.index(3)],
        })
    }
}

#[test]
fn a_seed_determines_the_schedule() {
    let kinds = Track::LinksAndStore.faults(Kind::Postgres);
    let faults = |seed| Schedule::new(seed, kinds, 3, 1_500).take(20).collect::<Vec<_>>();
    assert_eq!(faults(7), faults(7));
    assert_ne!(faults(7), faults(8));
}

#[test]
fn every_kind_occurs_in_each_round() {
    for (track, store) in
        Kind::ALL.into_iter().flat_map(|store| [(Track::Services, store), (Track::LinksAndStore, store)])
    {
        let kinds = track.faults(store);
        let mut faults = Schedule::new(7, kinds, 3, 1_500);
        for _ in 0..5 {
            let mut round: Vec<_> = faults.by_ref().take(kinds.len()).map(|planned| planned.fault).collect();
            round.sort_unstable();
            let mut kinds = kinds.to_vec();
            kinds.sort_unstable();
            assert_eq!(round, kinds);
        }
    }
}
