//! Settings that cannot be meant are refused when a layer is built.

use std::{cell::Cell, convert::Infallible, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use tower::{Layer, service_fn};
use tower_idempotency::{
    AfterCrash, BackgroundTasks, ConsumerLayer, IdempotencyLayer, MemoryStore, Once, Policy, Reconciler, Tokens,
    fingerprint::Fingerprint, reconcile::Resolution,
};

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

fn build(layer: &IdempotencyLayer) {
    drop(layer.layer(service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())))));
}

#[test]
#[should_panic(expected = "a retention of 0ns remembers nothing")]
fn a_retention_of_nothing() {
    drop(layer().retention(Duration::ZERO));
}

#[test]
#[should_panic(expected = "a retention of 999µs remembers nothing")]
fn a_retention_of_nothing_in_a_policy() {
    drop(Policy::reject().retention(Duration::from_micros(999)));
}

#[test]
#[should_panic(expected = "a lease of 0ns lapses at once")]
fn a_lease_of_nothing() {
    drop(layer().lease(Duration::ZERO));
}

#[test]
#[should_panic(expected = "a lease of 999µs lapses at once")]
fn a_lease_of_nothing_in_a_policy() {
    drop(Policy::reject().lease(Duration::from_micros(999)));
}

#[test]
#[should_panic(expected = "a lease of 0ns lapses at once")]
fn a_lease_of_nothing_for_tokens() {
    drop(Tokens::new(MemoryStore::new()).layer("order").lease(Duration::ZERO));
}

#[test]
#[should_panic(expected = "a lease of 0ns lapses at once")]
fn a_lease_of_nothing_for_messages() {
    let key = |order: &String| order.clone();
    let layer = ConsumerLayer::with_fingerprint(MemoryStore::new(), "payouts", key, |_| Fingerprint::OFF);
    drop(layer.lease(Duration::ZERO));
}

#[test]
#[should_panic(expected = "a layer without methods protects nothing")]
fn no_methods() {
    drop(layer().methods([]));
}

#[test]
#[should_panic(expected = "cannot run at most once")]
fn at_most_once_and_fail_open() {
    build(&layer().fail_open().policy(Policy::at_most_once()));
}

#[test]
#[should_panic(expected = "cannot run at most once")]
fn at_most_once_and_fail_open_when_full() {
    build(&layer().fail_open_when_full().policy(Policy::at_most_once()));
}

#[test]
#[should_panic(expected = "cannot run at most once")]
fn never_again_after_a_crash_and_fail_open() {
    build(&layer().after_crash(AfterCrash::Never).fail_open());
}

#[test]
#[should_panic(expected = "a limit of 0 background tasks")]
fn no_background_tasks() {
    drop(BackgroundTasks::new().limit(0));
}

#[test]
#[should_panic(expected = "a time for background tasks of zero")]
fn no_time_for_background_tasks() {
    drop(BackgroundTasks::new().max_duration(Duration::ZERO));
}

#[test]
#[should_panic(expected = "a body timeout of zero")]
fn no_time_for_a_body() {
    drop(layer().body_timeout(Duration::ZERO));
}

#[test]
#[should_panic(expected = "a token lifetime of zero")]
fn tokens_that_are_never_good() {
    drop(Tokens::new(MemoryStore::new()).lifetime(Duration::ZERO));
}

thread_local! {
    static PANICKED_IN: Cell<String> = const { Cell::new(String::new()) };
}

fn note_where_it_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED_IN.set(panic.location().map_or_else(String::new, |place| place.file().to_owned()));
        before(panic);
    }));
}

/// What one layer refuses, every other one refuses.
#[test]
fn no_time_for_the_store_and_nothing_to_remember() {
    let refused = |what: &str, build: Box<dyn FnOnce() + std::panic::UnwindSafe>, message: &str| {
        let panic = std::panic::catch_unwind(build).expect_err(what);
        let text = panic.downcast_ref::<String>().unwrap_or_else(|| panic!("{what}: no text"));
        assert!(text.contains(message), "{what}: {text}");
        assert_eq!(PANICKED_IN.take(), file!(), "{what}: the panic is at the caller's line");
    };
    note_where_it_panics();
    macro_rules! each {
        ($method:ident: $message:literal; $($what:literal: $layer:expr),+ $(,)?) => {
            $(refused($what, Box::new(|| drop($layer.$method(Duration::ZERO))), $message);)+
        };
    }
    let store = MemoryStore::new;
    let consumer =
        || ConsumerLayer::with_fingerprint(MemoryStore::new(), "c", |(): &()| "k".to_owned(), |()| Fingerprint::OFF);
    let reconciler = || Reconciler::new(MemoryStore::new(), |_| std::future::ready(Resolution::Leave));
    each!(store_timeout: "a store timeout of zero";
        "IdempotencyLayer": layer(),
        "TokenLayer": Tokens::new(store()).layer("t"),
        "Tokens": Tokens::new(store()),
        "ConsumerLayer": consumer(),
        "Once": Once::new(store(), "o"),
        "Reconciler": reconciler(),
    );
    each!(body_timeout: "a body timeout of zero";
        "IdempotencyLayer": layer(),
        "TokenLayer": Tokens::new(store()).layer("t"),
    );
    each!(retention: "a retention of 0ns remembers nothing";
        "IdempotencyLayer": layer(),
        "TokenLayer": Tokens::new(store()).layer("t"),
        "ConsumerLayer": consumer(),
        "Once": Once::new(store(), "o"),
        "Reconciler": reconciler(),
    );
    each!(lease: "lapses at once";
        "IdempotencyLayer": layer(),
        "TokenLayer": Tokens::new(store()).layer("t"),
        "ConsumerLayer": consumer(),
        "Once": Once::new(store(), "o"),
        "Reconciler": reconciler(),
    );
}

#[test]
#[should_panic(expected = "a layer without methods protects nothing")]
fn a_token_layer_without_methods() {
    drop(Tokens::new(MemoryStore::new()).layer("t").methods([]));
}

#[test]
fn each_by_itself_is_fine() {
    build(&layer().fail_open());
    build(&layer().policy(Policy::at_most_once()));
    build(&layer().retention(Duration::from_millis(1)));
}
