use std::fmt;

use crate::random::Random;

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
}

impl Fault {
    pub(crate) const OF_SERVICES: [Self; 2] = [Self::Stop, Self::Kill];
    pub(crate) const OF_LINKS_AND_STORE: [Self; 8] = [
        Self::Cut,
        Self::HalfOpen,
        Self::Held,
        Self::Unanswered,
        Self::Slow,
        Self::StoreKill,
        Self::StoreStop,
        Self::Alter,
    ];

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
            Self::Alter => (0, 0),
        }
    }
}

/// Two kinds of faults go on beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Track {
    Services,
    LinksAndStore,
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
            Fault::StoreKill | Fault::StoreStop | Fault::Alter => "store".into(),
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

/// All faults of a track, without an end. In each round, every kind occurs once.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    random: Random,
    kinds: &'static [Fault],
    services: usize,
    lease: u64,
    round: Vec<Fault>,
}

impl Schedule {
    pub(crate) fn new(seed: u64, track: Track, services: usize, lease: u64) -> Self {
        let (name, kinds): (_, &[_]) = match track {
            Track::Services => ("services", &Fault::OF_SERVICES),
            Track::LinksAndStore => ("links and store", &Fault::OF_LINKS_AND_STORE),
        };
        Self { random: Random::new(seed, name), kinds, services, lease, round: Vec::new() }
    }
}

impl Iterator for Schedule {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        if self.round.is_empty() {
            self.round = self.kinds.to_vec();
            self.random.shuffle(&mut self.round);
        }
        let (fault, random) = (self.round.pop()?, &mut self.random);
        let (least, most) = fault.lasts();
        Some(Planned {
            pause: random.between(self.lease / 8, self.lease / 2),
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
    let faults = |seed| Schedule::new(seed, Track::LinksAndStore, 3, 1_500).take(20).collect::<Vec<_>>();
    assert_eq!(faults(7), faults(7));
    assert_ne!(faults(7), faults(8));
}

#[test]
fn every_kind_occurs_in_each_round() {
    for (track, kinds) in
        [(Track::Services, &Fault::OF_SERVICES[..]), (Track::LinksAndStore, &Fault::OF_LINKS_AND_STORE)]
    {
        let mut faults = Schedule::new(7, track, 3, 1_500);
        for _ in 0..5 {
            let mut round: Vec<_> = faults.by_ref().take(kinds.len()).map(|planned| planned.fault).collect();
            round.sort_unstable();
            assert_eq!(round, kinds);
        }
    }
}
