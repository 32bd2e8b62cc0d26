//! Servers that have commands which compare: `SET … IFEQ`, and one that removes a record so.
//!
//! They are played by an older server, so that they are tested beside any. `scripts/test slow` asks real ones.

mod played;

use std::{future::ready, time::Duration};

use tower_idempotency::{
    RedisStore,
    store::{Binding, Claim, Claimed, Finished, Issue, Record, Release, Renewed, Settlement, State, Store, StoreAdmin},
    testing::suite,
};

use self::played::{Newer, REDIS_8_4, VALKEY_8_1, VALKEY_9_0};
use crate::{MINUTE, claim, granted, is_near, key, release, replays, server::Server, settled, settlement, walk};

/// What a record says, but for who and when.
fn content(record: &Record) -> String {
    let Record { state, attempt, fingerprint, caller, caller_is_new, secret, origin, at_most_once, takeover, .. } =
        record;
    let Record { payload, note, trace, binding, .. } = record;
    format!(
        "{state:?} {attempt} {fingerprint:?} {caller:?} {caller_is_new} {secret:?} {origin:?} {at_most_once} {takeover} \
         {payload:?} {note:?} {trace:?} {binding:?}"
    )
}

fn sent(commands: &[(&str, u32)]) -> Vec<(String, u32)> {
    commands.iter().map(|&(command, times)| (command.to_owned(), times)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_rules_hold_on_them() {
    for info in [VALKEY_8_1, VALKEY_9_0, REDIS_8_4] {
        let server = Server::start(&[]);
        let store = Newer::connect(&server, info).await.store().await;
        suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
    }
}

#[tokio::test]
async fn a_random_walk_on_them_agrees_with_the_rules() {
    let server = Server::start(&[]);
    let store = Newer::connect(&server, REDIS_8_4).await.store().await;
    walk::agrees_with_the_rules(|namespace| store.namespace(namespace)).await;
}

#[tokio::test]
async fn a_first_request_is_two_plain_commands() {
    let server = Server::start(&[]);
    for info in [VALKEY_8_1, VALKEY_9_0, REDIS_8_4] {
        let newer = Newer::connect(&server, info).await;
        let store = newer.store().await.namespace(info);
        newer.sent();
        settled(&store, &key("settled")).await;
        replays(&store, &key("settled")).await;
        assert_eq!(newer.sent(), sent(&[("SET", 3)]));

        let first = claim();
        granted(&store, &key("released"), &first).await;
        assert!(matches!(store.release(&key("released"), &release(&first)).await.unwrap(), Finished::Done));
        assert_eq!(newer.sent(), sent(&[("SET", 2)]));

        // A large answer needs no draft.
        let large = Settlement::new(first.claimant, Some(vec![b'x'; 70_000].into()), MINUTE);
        granted(&store, &key("large"), &first).await;
        assert!(matches!(store.settle(&key("large"), &large).await.unwrap(), Finished::Done));
        assert_eq!(newer.sent(), sent(&[("SET", 2)]));
        let record = store.inspect(&key("large")).await.unwrap().unwrap();
        assert_eq!(record.payload, large.payload);
        newer.sent();

        granted(&store, &key("undone"), &first).await;
        let undo = Release::undo(first.claimant, MINUTE);
        assert!(matches!(store.release(&key("undone"), &undo).await.unwrap(), Finished::Done));
        let command = match info {
            VALKEY_9_0 => "DELIFEQ",
            REDIS_8_4 => "DELEX",
            _ => "EVALSHA",
        };
        let commands = newer.sent();
        assert!(commands.contains(&(command.to_owned(), 1)), "{commands:?}");
        assert!(store.inspect(&key("undone")).await.unwrap().is_none());
    }
}

/// A record says the same whichever way it came to be.
#[tokio::test]
async fn a_plain_command_leaves_the_record_that_the_script_leaves() {
    let server = Server::start(&[]);
    let plain = Newer::connect(&server, REDIS_8_4).await.store().await.namespace("plain");
    let scripts = Newer::connect(&server, "redis_version:7.0.0").await.store().await.namespace("scripts");
    for note in [&b""[..], b"a note"] {
        for payload in [None, Some("kept".into())] {
            for at_most_once in [true, false] {
                let (mut first, key) = (claim(), key(&format!("{} {payload:?} {at_most_once}", note.len())));
                (first.note, first.at_most_once) = (note.to_vec().into(), at_most_once);
                for (n, store) in [(0, &plain), (1, &scripts), (2, &plain), (3, &scripts)] {
                    assert!(matches!(store.claim(&key, &first).await.unwrap(), Claimed::Granted(_)), "{n}");
                    let before = store.inspect(&key).await.unwrap().unwrap();
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    let finished = if n < 2 {
                        store.release(&key, &release(&first)).await
                    } else {
                        store.settle(&key, &Settlement::new(first.claimant, payload.clone(), MINUTE)).await
                    };
                    assert!(matches!(finished.unwrap(), Finished::Done), "{n}");
                    let after = store.inspect(&key).await.unwrap().unwrap();
                    assert!(is_near(after.created, before.created), "{before:?} {after:?}");
                    assert!(after.expires_in <= MINUTE && after.expires_in > MINUTE / 2, "{after:?}");
                    if n == 1 || n == 3 {
                        let other = plain.inspect(&key).await.unwrap().unwrap();
                        assert_eq!(content(&other), content(&after));
                        assert_eq!((other.claimant, other.lease_left), (after.claimant, after.lease_left));
                    }
                    if n == 1 {
                        for store in [&plain, &scripts] {
                            assert!(store.forget(&key).await.unwrap());
                        }
                    }
                }
            }
        }
    }
}

/// The clocks of two hosts are not compared: a release says how long the run took, and the next claim counts from there.
#[tokio::test]
async fn a_record_keeps_its_beginning_through_the_next_claim() {
    let server = Server::start(&[]);
    let store = Newer::connect(&server, REDIS_8_4).await.store().await;
    let (first, next) = (claim(), claim());
    granted(&store, &key("a"), &first).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    store.release(&key("a"), &release(&first)).await.unwrap();
    let released = store.inspect(&key("a")).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(matches!(store.claim(&key("a"), &next).await.unwrap(), Claimed::Granted(grant) if grant.attempt == 2));
    let running = store.inspect(&key("a")).await.unwrap().unwrap();
    assert!(matches!(store.settle(&key("a"), &settlement(&next)).await.unwrap(), Finished::Done));
    let settled = store.inspect(&key("a")).await.unwrap().unwrap();
    assert_eq!((running.created, settled.created), (released.created, released.created));
    assert!(settled.settled.unwrap() >= settled.created + Duration::from_millis(50));
}

#[tokio::test]
async fn an_end_whose_answer_was_lost_is_recognised() {
    let server = Server::start(&[]);
    let newer = Newer::connect(&server, REDIS_8_4).await;
    let store = newer.store().await;
    let [first, other] = [claim(), claim()];
    granted(&store, &key("a"), &first).await;
    newer.manner().loses_an_answer = true;
    assert!(matches!(store.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::AlreadyDone));
    replays(&store, &key("a")).await;
    granted(&store, &key("b"), &other).await;
    newer.manner().loses_an_answer = true;
    assert!(matches!(store.release(&key("b"), &release(&other)).await.unwrap(), Finished::AlreadyDone));

    // Another server answers the second time, which does not know the command.
    let last = claim();
    granted(&store, &key("c"), &last).await;
    (newer.manner().loses_an_answer, newer.manner().refusal) = (true, Some("ERR syntax error"));
    assert!(matches!(store.settle(&key("c"), &settlement(&last)).await.unwrap(), Finished::AlreadyDone));
}

/// Whatever changes the record of a running claim makes the script decide.
#[tokio::test]
async fn a_record_that_has_changed_is_ended_by_the_script() {
    let server = Server::start(&[]);
    let newer = Newer::connect(&server, REDIS_8_4).await;
    let (store, other) = (newer.store().await, server.store().await);

    let waited_for = claim();
    granted(&store, &key("waited for"), &waited_for).await;
    let waiter = tokio::spawn({
        let (other, holder) = (other.clone(), waited_for.claimant);
        async move { other.changed(&key("waited for"), holder, MINUTE).await }
    });
    while !server.tell("PUBSUB CHANNELS").contains("wake") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(matches!(store.settle(&key("waited for"), &settlement(&waited_for)).await.unwrap(), Finished::Done));
    tokio::time::timeout(Duration::from_millis(600), waiter).await.unwrap().unwrap().unwrap();

    // One's own renewal is known of, so that no command is sent in vain.
    let renewed = claim();
    granted(&store, &key("renewed"), &renewed).await;
    assert_eq!(store.renew(&key("renewed"), &renewed).await.unwrap(), Renewed::Done);
    newer.sent();
    assert!(matches!(store.settle(&key("renewed"), &settlement(&renewed)).await.unwrap(), Finished::Done));
    assert!(!newer.sent().iter().any(|(command, _)| command == "SET"));
    let renewed = claim();
    granted(&store, &key("renewed by another handle"), &renewed).await;
    assert_eq!(other.renew(&key("renewed by another handle"), &renewed).await.unwrap(), Renewed::Done);
    let settled = store.settle(&key("renewed by another handle"), &settlement(&renewed)).await.unwrap();
    assert!(matches!(settled, Finished::Done));

    let taken = Claim::new(Duration::ZERO, MINUTE);
    granted(&store, &key("taken over"), &taken).await;
    let next = claim();
    assert!(matches!(other.claim(&key("taken over"), &next).await.unwrap(), Claimed::Granted(_)));
    match store.settle(&key("taken over"), &settlement(&taken)).await.unwrap() {
        Finished::Refused(Some(record)) => assert_eq!((record.state, record.claimant), (State::Running, next.claimant)),
        finished => panic!("{finished:?}"),
    }

    let gone = claim();
    granted(&store, &key("gone"), &gone).await;
    assert!(other.forget(&key("gone")).await.unwrap());
    assert!(matches!(store.settle(&key("gone"), &settlement(&gone)).await.unwrap(), Finished::Refused(None)));
    assert!(store.inspect(&key("gone")).await.unwrap().is_none());
}

/// One claimant may have claimed several keys, and a token is claimed by a script.
#[tokio::test]
async fn a_claim_is_known_by_its_name_too() {
    let server = Server::start(&[]);
    let store = Newer::connect(&server, REDIS_8_4).await.store().await;
    let first = claim();
    let (shop, other) = (store.namespace("shop"), store.namespace("other"));
    granted(&shop, &key("a"), &first).await;
    granted(&shop, &key("b"), &first).await;
    assert!(matches!(other.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::Refused(None)));
    for name in ["a", "b"] {
        assert!(matches!(shop.settle(&key(name), &settlement(&first)).await.unwrap(), Finished::Done));
        assert!(matches!(shop.settle(&key(name), &settlement(&first)).await.unwrap(), Finished::AlreadyDone));
        replays(&shop, &key(name)).await;
    }
    let binding = Binding::new("checkout", Some("ann"));
    store.issue(&key("token"), &Issue::new(binding.clone(), MINUTE)).await.unwrap();
    let mut spent = claim();
    spent.issued = Some(binding.clone());
    granted(&store, &key("token"), &spent).await;
    assert!(matches!(store.settle(&key("token"), &settlement(&spent)).await.unwrap(), Finished::Done));
    assert_eq!(store.inspect(&key("token")).await.unwrap().unwrap().binding, Some(binding));
}

/// A server that lacks the commands has taken the place of the one that had them: that costs one call an error.
#[tokio::test]
async fn a_server_that_refuses_is_not_asked_again() {
    let server = Server::start(&[]);
    for refusal in ["ERR syntax error", "ERR unknown command 'DELEX'", "NOPERM this user has no permissions"] {
        let newer = Newer::connect(&server, REDIS_8_4).await;
        let store = newer.store().await.namespace(refusal);
        newer.manner().refusal = Some(refusal);
        let mut asked = Vec::new();
        for name in ["a", "b"] {
            let first = claim();
            granted(&store, &key(name), &first).await;
            newer.sent();
            let undo = Release::undo(first.claimant, MINUTE);
            assert!(matches!(store.release(&key(name), &undo).await.unwrap(), Finished::Done));
            asked.push(newer.sent().iter().any(|(command, _)| command == "DELEX"));
        }
        assert_eq!(asked, [true, false], "{refusal}");
        let mut asked = Vec::new();
        for name in ["c", "d"] {
            let first = claim();
            granted(&store, &key(name), &first).await;
            newer.sent();
            assert!(matches!(store.settle(&key(name), &settlement(&first)).await.unwrap(), Finished::Done));
            asked.push(newer.sent().iter().any(|(command, _)| command == "SET"));
            replays(&store, &key(name)).await;
        }
        assert_eq!(asked, [true, false], "{refusal}");
    }
}

#[tokio::test]
async fn a_server_that_takes_no_writes_still_recognises_a_repetition() {
    let server = Server::start(&[]);
    let newer = Newer::connect(&server, REDIS_8_4).await;
    let store = newer.store().await;
    let (first, other) = (claim(), claim());
    granted(&store, &key("a"), &first).await;
    granted(&store, &key("b"), &other).await;
    newer.manner().loses_an_answer = true;
    newer.manner().refusal = Some("OOM command not allowed when used memory > 'maxmemory'.");
    assert!(matches!(store.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::AlreadyDone));
    server.tell("CONFIG SET maxmemory 1");
    let error = store.settle(&key("b"), &settlement(&other)).await.unwrap_err();
    assert!(error.is_without_effect() && error.is_temporary(), "{error:?}");
    server.tell("CONFIG SET maxmemory 0");
    assert!(matches!(store.settle(&key("b"), &settlement(&other)).await.unwrap(), Finished::Done));
}

/// A version that is not reported is not guessed.
#[tokio::test]
async fn a_server_that_may_not_be_asked_for_its_version_is_sent_scripts() {
    let server = Server::start(&[]);
    assert!(server.tell("ACL SETUSER shop on >password ~* &* +@all -info").starts_with("+OK"));
    let store = RedisStore::connect(&server.url().replace("redis://", "redis://shop:password@")).await.unwrap();
    settled(&store, &key("a")).await;
    assert!(server.tell("INFO commandstats").contains("cmdstat_evalsha"));
}
