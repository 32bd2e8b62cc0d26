//! What a search allows.

/// How runs are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// A lapsed claim is taken over.
    Lease,
    /// A lapsed claim is never taken over.
    AtMostOnce,
    /// The effect is committed with the record, or not at all.
    Transaction,
}

/// A rule that is broken on purpose, so that a search shows which property holds because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// A claim is granted although the lease of another one has not lapsed.
    TakeoverTooEarly,
    /// A claim is granted although the record is settled.
    SettledIsClaimed,
    /// A settlement is written although the claim is another's.
    AnybodySettles,
    /// A settlement is written over another one.
    SettledTwice,
    /// A release is written although the claim is another's.
    AnybodyReleases,
    /// A release forgets whose record it is.
    ReleaseForgetsTheCaller,
    /// A renewal is written although the claim is another's.
    AnybodyRenews,
    /// The store forgets that an operation runs at most once.
    AtMostOnceIsForgotten,
    /// The content is not compared.
    ContentIsIgnored,
    /// The caller is not compared.
    CallerIsIgnored,
    /// A settled record is removed long before its retention ends.
    RetentionIsShort,
    /// The store reads a clock that is ahead by a lease.
    ClockIsAhead,
    /// A process uses a grant although it reads it after its lease.
    LateGrantIsUsed,
    /// A process counts its lease from the moment at which it reads the grant.
    LeaseCountsFromTheReply,
    /// A process acts although its lease has lapsed.
    ActsAfterItsLease,
    /// A process goes on although its renewal was refused.
    RefusedRenewalIsIgnored,
    /// A claim that was not answered in time is left as it is.
    UnansweredClaimIsLeft,
    /// A process answers its client before its settlement is recorded.
    AnswersBeforeItSettles,
    /// A process answers with its own value although the claim was lost.
    OwnValueAfterALoss,
    /// A failure is settled like a success.
    FailureIsSettled,
    /// The effect is committed although its record is not.
    EffectWithoutItsRecord,
    /// What was rolled back stays.
    RollbackKeepsTheEffect,
    /// The reconciler ends a claim that has not lapsed.
    ReconcilesTooEarly,
    /// The reconciler does not compare the claim that it has seen.
    ReconcilesAnybody,
}

/// What a search allows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Config {
    pub(crate) mode: Mode,
    /// The requests: for each its caller and its content.
    pub(crate) requests: Vec<(u8, u8)>,
    /// How far the clock goes. A lease is two ticks, a retention is six.
    pub(crate) ticks: u8,
    /// How many processes may die.
    pub(crate) crashes: u8,
    /// How many messages, or their answers, may be lost.
    pub(crate) losses: u8,
    /// How many messages may arrive twice.
    pub(crate) copies: u8,
    /// How many answers of the store may be late.
    pub(crate) late: u8,
    /// How many runs may fail.
    pub(crate) failures: u8,
    /// How many renewals a process may send.
    pub(crate) renewals: u8,
    /// Whether a process may stand still between its look at the lease and its effect.
    pub(crate) pauses: bool,
    /// Whether a reconciler looks for abandoned records.
    pub(crate) reconciler: bool,
    /// Whether a failover may forget the last write.
    pub(crate) failover: bool,
    pub(crate) broken: Option<Broken>,
}

impl Config {
    /// Two tries of one caller with one content, without faults.
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            mode,
            requests: vec![(1, 1), (1, 1)],
            ticks: 3,
            crashes: 0,
            losses: 0,
            copies: 0,
            late: 0,
            failures: 0,
            renewals: 0,
            pauses: false,
            reconciler: false,
            failover: false,
            broken: None,
        }
    }

    pub(crate) fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }
}

/// All configurations without a broken rule, by name.
pub(crate) fn all() -> Vec<(&'static str, Config)> {
    let mut all = Vec::new();
    for (mode, [calm, crash, loss, copy, failure, renewal, three, reconciled, failover]) in [
        (
            Mode::Lease,
            [
                "lease",
                "lease-crash",
                "lease-loss",
                "lease-copy",
                "lease-failure",
                "lease-renewal",
                "lease-three",
                "lease-reconciled",
                "lease-failover",
            ],
        ),
        (
            Mode::AtMostOnce,
            [
                "once",
                "once-crash",
                "once-loss",
                "once-copy",
                "once-failure",
                "once-renewal",
                "once-three",
                "once-reconciled",
                "once-failover",
            ],
        ),
        (
            Mode::Transaction,
            [
                "transaction",
                "transaction-crash",
                "transaction-loss",
                "transaction-copy",
                "transaction-failure",
                "transaction-renewal",
                "transaction-three",
                "transaction-reconciled",
                "transaction-failover",
            ],
        ),
    ] {
        let base = Config::new(mode);
        all.push((calm, base.clone()));
        all.push((crash, Config { crashes: 1, ticks: 4, ..base.clone() }));
        all.push((loss, Config { losses: 1, late: 1, ticks: 4, ..base.clone() }));
        all.push((copy, Config { copies: 1, ticks: 4, ..base.clone() }));
        all.push((failure, Config { failures: 1, crashes: 1, ..base.clone() }));
        all.push((renewal, Config { renewals: 1, ticks: 4, pauses: mode != Mode::AtMostOnce, ..base.clone() }));
        all.push((three, Config { requests: vec![(1, 1), (2, 1), (1, 2)], failures: 1, ..base.clone() }));
        all.push((reconciled, Config { reconciler: true, crashes: 1, ticks: 4, ..base.clone() }));
        all.push((failover, Config { failover: true, ..base }));
    }
    all
}
