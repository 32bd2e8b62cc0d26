//! Each configuration holds, and each rule that is broken on purpose is found by the property that needs it.

use stateright::{Checker, Model};

use crate::{
    config::{
        self,
        Broken::{self, *},
        Config,
        Mode::{self, AtMostOnce, Lease, Transaction},
    },
    properties::{NO_FAULT, NOT_BEGUN, ONE_EFFECT, ONE_HOLDER, ONE_RUN},
    search,
};

#[test]
fn the_rules_hold_in_every_configuration() {
    for (name, config) in config::all() {
        let checker = config.clone().checker().spawn_bfs().join();
        println!("{name}: {} states", checker.unique_state_count());
        assert!(checker.discoveries().is_empty(), "{name}: {}", search(config));
        assert!(checker.unique_state_count() > 20, "{name} allows next to nothing");
    }
}

fn with(mode: Mode, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config { ticks: 4, ..Config::new(mode) };
    change(&mut config);
    config
}

#[test]
fn each_rule_that_is_broken_is_found() {
    let calm = |mode| with(mode, |_| ());
    let fails = |mode| with(mode, |config| config.failures = 1);
    let three = |mode| {
        with(mode, |config| {
            config.requests = vec![(1, 1); 3];
            config.ticks = 3;
            config.failures = 1;
        })
    };
    let copies = |mode| with(mode, |config| config.copies = 1);
    let others = |mode| {
        with(mode, |config| {
            config.requests = vec![(1, 1), (2, 1)];
            config.failures = 1;
        })
    };
    let contents = |mode| with(mode, |config| config.requests = vec![(1, 1), (1, 2)]);
    let renews = |mode| with(mode, |config| config.renewals = 1);
    let reconciles = |mode| {
        with(mode, |config| {
            config.reconciler = true;
            config.crashes = 1;
        })
    };
    let cases: Vec<(Broken, Config, &str)> = vec![
        (TakeoverTooEarly, calm(Lease), ONE_HOLDER),
        (SettledIsClaimed, calm(Lease), NO_FAULT),
        (AnybodySettles, calm(Lease), NO_FAULT),
        (SettledTwice, calm(Lease), NO_FAULT),
        (AnybodyReleases, three(Lease), ONE_HOLDER),
        (ReleaseForgetsTheCaller, others(Lease), NO_FAULT),
        (AnybodyRenews, renews(Lease), ONE_HOLDER),
        (AtMostOnceIsForgotten, calm(AtMostOnce), ONE_RUN),
        (ContentIsIgnored, contents(Lease), NO_FAULT),
        (CallerIsIgnored, others(Lease), NO_FAULT),
        (RetentionIsShort, calm(AtMostOnce), ONE_RUN),
        (ClockIsAhead, calm(Lease), ONE_HOLDER),
        (LateGrantIsUsed, with(Lease, |config| config.late = 1), ONE_HOLDER),
        (LeaseCountsFromTheReply, with(Lease, |config| config.late = 1), ONE_HOLDER),
        (ActsAfterItsLease, calm(Lease), ONE_EFFECT),
        (RefusedRenewalIsIgnored, renews(Lease), ONE_HOLDER),
        (UnansweredClaimIsLeft, calm(AtMostOnce), NOT_BEGUN),
        (AnswersBeforeItSettles, calm(Lease), NO_FAULT),
        (OwnValueAfterALoss, calm(Lease), NO_FAULT),
        (FailureIsSettled, fails(Lease), NO_FAULT),
        (EffectWithoutItsRecord, copies(Transaction), ONE_EFFECT),
        (RollbackKeepsTheEffect, with(Transaction, |config| config.crashes = 1), ONE_EFFECT),
        (ReconcilesTooEarly, reconciles(Lease), NO_FAULT),
        (ReconcilesAnybody, reconciles(Lease), NO_FAULT),
    ];
    let (mut missed, mut searched) = (Vec::new(), Vec::<Config>::new());
    for (broken, config, property) in cases {
        let checker = Config { broken: Some(broken), ..config.clone() }.checker().spawn_bfs().join();
        let Some(path) = checker.discovery(property) else {
            missed.push(format!("{broken:?} breaks {:?}", checker.discoveries().keys().collect::<Vec<_>>()));
            continue;
        };
        let steps: Vec<_> = path.into_actions().iter().map(ToString::to_string).collect();
        println!("{broken:?}, {property}:\n  {}", steps.join("\n  "));
        if !searched.contains(&config) {
            let unbroken = config.clone().checker().spawn_bfs().join();
            assert!(unbroken.discoveries().is_empty(), "{broken:?} unbroken: {}", search(config));
            searched.push(config);
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
