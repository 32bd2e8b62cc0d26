//! Every rule, for both kinds of tokens, on every store. A store is one line at the end.

use std::{
    future::{Future, ready},
    sync::Arc,
};

#[cfg(feature = "redis")]
use tower_idempotency::RedisStore;
#[cfg(feature = "sqlite")]
use tower_idempotency::SqliteStore;
use tower_idempotency::{MemoryStore, store::StoreAdmin};

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::tokens::database_servers;
use crate::tokens::{
    fixture::{Fixture, Kind},
    renewed, rules,
};

#[cfg(feature = "redis")]
#[allow(dead_code)]
#[path = "../../redis/server.rs"]
mod server;

macro_rules! for_each_rule {
    ($then:ident $given:tt) => {
        for_each_rule! { $then $given
            renewed: {
                an_expired_one_brings_another
                a_store_that_issues_nothing_refuses_all_the_same
                one_that_expires_while_its_body_comes_is_refused
                a_successor_is_told_once_it_is_recorded
                a_successor_is_told_by_the_kept_answer
                there_is_one_successor_whatever_fails
                a_principal_is_a_text_that_any_store_can_keep
            }
            rules: {
                each_is_good_once_and_for_its_life
                what_was_never_issued_is_never_accepted
                a_stranger_neither_succeeds_nor_spends_it
                a_failure_gives_it_back_with_its_first_expiry
                an_attempt_that_is_undone_leaves_it_as_it_was
                it_may_be_in_a_form
                the_same_is_replayed_and_nothing_else
                one_of_many_gets_through
                a_failed_answer_may_bring_another
            }
        }
    };
    ($then:ident $given:tt $($rules:ident: { $($rule:ident)* })*) => {
        $($($then! { $given $rules $rule })*)*
    };
}

/// A test for each rule.
macro_rules! every_rule_on {
    ($name:ident, $store:expr, $($attribute:tt)*) => {
        mod $name {
            use super::*;

            mod stored {
                use super::*;

                for_each_rule! { a_test (Kind::Stored, $store, ($($attribute)*)) }
            }
            #[cfg(feature = "signed-tokens")]
            mod signed {
                use super::*;

                for_each_rule! { a_test (Kind::Signed, $store, ($($attribute)*)) }
            }
        }
    };
}

macro_rules! a_test {
    (($kind:expr, $store:expr, ($($attribute:tt)*)) $rules:ident $rule:ident) => {
        #[tokio::test($($attribute)*)]
        async fn $rule() {
            on($store, $kind, $rules::$rule).await;
        }
    };
}

/// One test for all rules, since a server takes long to start. Each has a database of its own.
#[cfg(any(feature = "mysql", feature = "postgres"))]
macro_rules! all_rules_on {
    ($name:ident, $database:ident) => {
        mod $name {
            use super::*;

            #[tokio::test]
            async fn stored() {
                let server = database_servers::$database();
                for_each_rule! { in_turn (Kind::Stored, server, database_servers::$name) }
            }

            #[cfg(feature = "signed-tokens")]
            #[tokio::test]
            async fn signed() {
                let server = database_servers::$database();
                for_each_rule! { in_turn (Kind::Signed, server, database_servers::$name) }
            }
        }
    };
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
macro_rules! in_turn {
    (($kind:expr, $server:ident, $store:path) $rules:ident $rule:ident) => {
        println!("{}", stringify!($rule));
        let store = $store(&$server, stringify!($rule)).await;
        on(ready(Place(store, Box::new(()), false)), $kind, $rules::$rule).await;
    };
}

/// A store, what has to live as long as it, and whether Tokio's time is its own.
struct Place(Arc<dyn StoreAdmin>, #[allow(dead_code)] Box<dyn Send>, bool);

async fn on<F>(place: impl Future<Output = Place>, kind: Kind, rule: impl FnOnce(Fixture) -> F)
where
    F: Future<Output = ()>,
{
    let Place(store, _alive, paused) = place.await;
    rule(Fixture { store, kind, paused }).await;
}

fn memory() -> Place {
    Place(Arc::new(MemoryStore::new()), Box::new(()), true)
}

#[cfg(feature = "redis")]
async fn redis() -> Place {
    let server = server::Server::start(&[]);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    Place(Arc::new(store), Box::new(server), false)
}

#[cfg(feature = "sqlite")]
async fn sqlite() -> Place {
    let folder = crate::folder::Folder::quick();
    let store = SqliteStore::open(folder.path().join("records.db")).await.unwrap();
    store.migrate().await.unwrap();
    Place(Arc::new(store), Box::new(folder), false)
}

every_rule_on!(on_memory, ready(memory()), start_paused = true);
#[cfg(feature = "redis")]
every_rule_on!(on_redis, redis(), flavor = "current_thread");
#[cfg(feature = "sqlite")]
every_rule_on!(on_sqlite, sqlite(), flavor = "current_thread");
#[cfg(feature = "postgres")]
all_rules_on!(on_postgres, postgres);
#[cfg(feature = "mysql")]
all_rules_on!(on_mariadb, mariadb);
