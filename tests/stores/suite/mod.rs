//! The conformance suite, checked itself: a correct store passes, and every rule is broken by a store that fails on it.

mod broken;
#[path = "../../../examples/custom_store.rs"]
mod custom_store;
mod faults;
mod model;
#[path = "../../http/common/walk.rs"]
mod walk;

use std::{collections::HashSet, future::ready, sync::Arc, time::Duration};

use tower_idempotency::{
    store::StoreAdmin,
    testing::{
        FaultyStore, ManualClock,
        suite::{self, Factory},
    },
};

use self::broken::{BUGS, Broken};
pub(crate) use self::model::Model;

#[tokio::test(start_paused = true)]
async fn a_correct_store_passes() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correct_store_passes_in_real_time_on_many_threads() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[test]
fn the_store_of_the_example_passes() {
    custom_store::main().expect("the example keeps all rules");
}

/// The guide shows the example step by step: each line of its code that is visible is one of the example's.
#[test]
fn the_guide_shows_the_example() {
    let guide = include_str!("../../../docs/stores.md");
    let example: HashSet<_> = include_str!("../../../examples/custom_store.rs").lines().map(str::trim).collect();
    let blocks = guide.split("```").skip(1).step_by(2);
    let code = blocks.filter(|block| block.starts_with("no_run\n")).flat_map(|block| block.lines().skip(1));
    let visible = code.map(str::trim).filter(|line| !line.is_empty() && *line != "#" && !line.starts_with("# "));
    let other: Vec<_> = visible.filter(|line| !example.contains(line)).collect();
    assert!(other.is_empty(), "docs/stores.md shows other lines than examples/custom_store.rs: {other:#?}");
}

struct Manual(ManualClock, Model);

impl Factory for Manual {
    type Store = Model;

    async fn store(&self, namespace: &str) -> Model {
        self.1.namespace(namespace)
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time);
    }

    fn side_by_side(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_random_walk_agrees_with_the_rules() {
    let store = Model::new();
    walk::agrees_with_the_rules(|namespace| store.namespace(namespace)).await;
}

#[tokio::test]
async fn a_correct_store_passes_with_a_manual_clock() {
    let clock = ManualClock::new();
    let now = clock.clone();
    suite::run(&Manual(clock, Model::with_clock(move || now.now()))).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_without_its_type_passes() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(Arc::new(store.namespace(namespace)) as Arc<dyn StoreAdmin>)).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_in_a_box_passes() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(Box::new(store.namespace(namespace)) as Box<dyn StoreAdmin>)).await;
}

#[tokio::test(start_paused = true)]
async fn a_faulty_store_without_faults_passes() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(FaultyStore::new(store.namespace(namespace)))).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_passes() {
    let store = Model::new();
    let slow = |namespace: &str| {
        let store = FaultyStore::new(store.namespace(namespace));
        store.faults().on_all().delay(Duration::from_millis(100));
        ready(store)
    };
    suite::run(&slow).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_slower_than_the_shortest_lease_passes() {
    let store = Model::new();
    let slow = |namespace: &str| {
        let store = FaultyStore::new(store.namespace(namespace));
        store.faults().on_all().delay(Duration::from_millis(300));
        ready(store)
    };
    suite::run(&slow).await;
}

#[tokio::test(start_paused = true)]
async fn every_broken_store_fails_on_the_rule_that_it_breaks() {
    let mut broken = HashSet::new();
    let mut unfound = Vec::new();
    for &(bug, rule) in BUGS {
        let store = Broken::new(bug);
        let failures = suite::failures(&|namespace: &str| ready(store.namespace(namespace))).await;
        let names: HashSet<_> = failures.iter().map(|failure| failure.rule.name()).collect();
        if !names.contains(rule) {
            unfound.push(format!("{bug:?} should break `{rule}`, and breaks {names:?}"));
        }
        broken.insert(rule);
    }
    assert!(unfound.is_empty(), "{unfound:#?}");
    let unbroken: Vec<_> = suite::rules().map(|rule| rule.name()).filter(|name| !broken.contains(name)).collect();
    assert!(unbroken.is_empty(), "no broken store stands for {unbroken:?}");
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "- a_token_that_was_never_issued_is_not_accepted: a token that was never issued: expected")]
async fn the_report_names_the_rule_and_what_was_the_case() {
    let store = Broken::new(broken::Bug::NeverIssuedAccepted);
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "no rule is called `nonsense`; there are a_free_key_is_granted, ")]
async fn an_unknown_rule_is_no_success() {
    let store = Model::new();
    suite::check("nonsense", &|namespace: &str| ready(store.namespace(namespace))).await;
}

#[test]
fn rules_have_names_of_their_own() {
    let names: HashSet<_> = suite::rules().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), suite::rules().count());
}
