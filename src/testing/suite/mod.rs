//! The rules that every store keeps.
//!
//! [`run`] checks them all and names those that are broken. It takes a [`Factory`], which is often a closure:
//!
//! ```
//! use std::future::ready;
//! use tower_idempotency::{MemoryStore, testing::suite};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let store = MemoryStore::new();
//! suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
//! # }
//! ```
//!
//! The rules check what [`Store`](crate::store::Store) and [`StoreAdmin`](crate::store::StoreAdmin) promise, each in a
//! namespace of its own and with random keys, so that a server can be used again and again. The records that they leave
//! there are gone a few minutes later. Against a server a run takes a few seconds. No rule measures how fast a store
//! is: a slow machine makes a run longer and nothing else, unless it stands still for ten seconds and more.
//!
//! One rule for each test is possible too; [`rules`] lists them and [`check`] takes their names:
//!
//! ```
//! # use std::future::ready;
//! # use tower_idempotency::{MemoryStore, testing::suite};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let store = MemoryStore::new();
//! let factory = |namespace: &str| ready(store.namespace(namespace));
//! suite::check("a_free_key_is_granted", &factory).await;
//!
//! for rule in suite::rules().filter(|rule| rule.topic() == "tokens") {
//!     suite::check(rule.name(), &factory).await;
//! }
//! # }
//! ```

mod callers;
mod claims;
mod endings;
mod expect;
mod factory;
mod lab;
mod leases;
mod operators;
mod races;
mod rule;
mod secrets;
mod tokens;
mod undoing;
mod waiting;

use std::{future::poll_fn, task::Poll};

use self::factory::Local;
pub use self::{
    factory::Factory,
    rule::{Failure, Rule},
};

/// Checks every rule.
///
/// It needs a Tokio runtime with its timer enabled, on one thread or several: it looks for races with tasks on that
/// runtime.
///
/// # Panics
///
/// Panics if the store breaks rules, with the names of all of them.
pub async fn run<F: Factory>(factory: &F) {
    let failures = failures(factory).await;
    let report: Vec<_> = failures.iter().map(|failure| format!("\n- {failure}")).collect();
    assert!(
        failures.is_empty(),
        "the store breaks {} of {} rules:{}",
        failures.len(),
        rules().count(),
        report.concat()
    );
}

/// Checks every rule, and returns those that the store breaks.
pub async fn failures<F: Factory>(factory: &F) -> Vec<Failure> {
    let (waiting, quick): (Vec<_>, Vec<_>) = rules().partition(|rule| rule.waits && factory.side_by_side());
    let mut lanes = vec![quick];
    lanes.extend(waiting.into_iter().map(|rule| vec![rule]));
    let lanes = lanes.into_iter().map(|rules| Box::pin(one_by_one(rules, factory)) as Local<'_, Vec<Failure>>);
    let mut failures = together(lanes.collect()).await.concat();
    failures.sort_by_key(|failure| rules().position(|rule| rule.name == failure.rule.name));
    failures
}

/// Checks one rule.
///
/// # Panics
///
/// Panics if the store breaks it, or if no rule has this name.
pub async fn check<F: Factory>(name: &str, factory: &F) {
    let Some(rule) = rules().find(|rule| rule.name == name) else {
        let names: Vec<_> = rules().map(|rule| rule.name).collect();
        panic!("no rule is called `{name}`; there are {}", names.join(", "));
    };
    if let Some(failure) = rule.apply(factory).await {
        panic!("the store breaks a rule:\n- {failure}");
    }
}

/// Returns the rules, by topic.
pub fn rules() -> impl Iterator<Item = Rule> {
    let topics = [
        claims::RULES,
        callers::RULES,
        secrets::RULES,
        leases::RULES,
        endings::RULES,
        undoing::RULES,
        races::RULES,
        waiting::RULES,
        tokens::RULES,
        operators::RULES,
    ];
    topics.into_iter().flatten().copied()
}

async fn one_by_one<F: Factory>(rules: Vec<Rule>, factory: &F) -> Vec<Failure> {
    let mut failures = Vec::new();
    for rule in rules {
        failures.extend(rule.apply(factory).await);
    }
    failures
}

async fn together<T>(mut futures: Vec<Local<'_, T>>) -> Vec<T> {
    let mut ended = Vec::new();
    poll_fn(|cx| {
        futures.retain_mut(|future| match future.as_mut().poll(cx) {
            Poll::Ready(answer) => {
                ended.push(answer);
                false
            }
            Poll::Pending => true,
        });
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ended
}
